"""The stage `scores`: ROUGE, words, measures of citations and judgements in long form, without a
model.
"""

import pytest

from pipeline import tables
from pipeline.engine.run import run_stage
from pipeline.evaluation.g_score.judge import CRITERIA
from pipeline.evaluation.rouge import FLOOR, METRICS, floor_task, rouge
from pipeline.evaluation.stages import SCORES
from tests.cases import cases
from tests.month_tables import write_table
from tests.unit.evaluation.made_up import GOLD, judgement, summary, task
from tests.workspaces import make_workspace

MONTH = "2024-03"
FIRST, SECOND, THIRD, GONE = (f"2403.9000{number}#S2" for number in (1, 2, 3, 4))
CHATCITE, ZERO_SHOT = "chatcite@some-model", "zero_shot@some-model"
OTHER_GOLD = "Words on something else [Reference 1]."
SIX = dict(zip(CRITERIA, (1, 2, 3, 4, 5, 5), strict=True))
SENTENCES = [{"text": f"So [Reference {n}].", "references": [n]} for n in (1, 2, 3)]
JUDGEMENTS = (
    judgement(FIRST, {CHATCITE: 2}, candidate_set="small", section_repeat=1),
    judgement(FIRST, {CHATCITE: SIX, ZERO_SHOT: 4}, CHATCITE, repeat=1),
    judgement(FIRST, {ZERO_SHOT: 4, CHATCITE: SIX}, ZERO_SHOT),
    judgement(FIRST, {ZERO_SHOT: 4, CHATCITE: SIX}, ZERO_SHOT, judge="another"),
)


def support(number, verdict):
    """A row of `citation_support` on the first task."""
    return {
        "task_id": FIRST,
        "system": "zero_shot",
        "model": "some-model",
        "sentence": number,
        "number": number,
        "verdict": verdict,
        "unjudged": None if verdict else "over_the_limit",
        "quote": "what the passage says",
        "quote_found": True,
        "judge": "strict" if verdict else None,
    }


@pytest.fixture(scope="module")
def month(tmp_path_factory):
    """(Rows of a month that have values, the run's outcome), at an endpoint where nobody
    listens.
    """
    folder = tmp_path_factory.mktemp("month")
    work = make_workspace(folder, llm_url="http://127.0.0.1:9/v1", llm_model="nobody")
    *tasks, gone = (task(name.removesuffix("#S2")) for name in (SECOND, FIRST, THIRD, GONE))
    written = [
        summary(row, system) | {"sentences": SENTENCES}
        for system in ("chatcite", "zero_shot")
        for row in (*tasks, gone)
    ]
    _, of_chatcite, *_, empty, first, third, of_gone = written
    empty |= {"text": "", "sentences": []}
    tasks[0]["gold"], tasks[2]["gold"] = OTHER_GOLD, ""
    sections = [of_chatcite, empty, first, third, of_gone, first | {"repeat": 1}]
    write_table(work.root, tables.RELATED_WORK_TASKS, MONTH, tasks)
    write_table(work.root, tables.SUMMARIES, MONTH, sections)
    write_table(work.root, tables.G_SCORES, MONTH, JUDGEMENTS)
    supports = [support(1, "supported"), support(2, "not"), support(3, None)]
    write_table(work.root, tables.CITATION_SUPPORT, MONTH, supports)
    outcome = run_stage(SCORES, work, MONTH)
    rows = work.root.rows(tables.SCORES, MONTH)
    return lambda **wanted: [row for row in rows if row | wanted == row], outcome


def values(rows):
    return {row["metric"]: row["value"] for row in rows}


def test_rouge_and_words_are_there_for_every_section_and_name_no_judge(month):
    rows_of, outcome = month
    for metric in (*METRICS, "words"):
        found = rows_of(metric=metric, judge=None, candidate_set=None, order=None, repeat=0)
        pairs = [(row["task_id"], row["system"]) for row in found if row["system"] != FLOOR]
        of_all = [(FIRST, "chatcite"), (FIRST, "zero_shot"), (SECOND, "zero_shot")]
        # The third task has no gold section.
        assert pairs == [*of_all, *[(THIRD, "zero_shot")] * (metric == "words")]
    assert dict(outcome.left_out) == {"task_gone": 1}
    # The made-up baseline writes the gold section.
    zero_shot = values(rows_of(task_id=FIRST, system="zero_shot"))
    assert zero_shot["rouge1"] == pytest.approx(100.0)
    assert zero_shot["words"] == len(GOLD.split())
    empty = values(rows_of(task_id=SECOND, system="zero_shot"))
    assert (empty["rouge1"], empty["words"], empty["reference_coverage"]) == (0.0, 0.0, 0.0)


def test_another_gold_section_is_the_floor_of_rouge(month):
    rows_of, _ = month
    assert values(rows_of(task_id=FIRST, system=FLOOR)) == rouge(GOLD, OTHER_GOLD)
    assert rows_of(task_id=THIRD, system=FLOOR) == []


def test_a_judgement_becomes_a_row_for_every_system_and_metric_and_has_no_vote_alone(month):
    rows_of, _ = month
    main = {"judge": "strict", "candidate_set": "main", "repeat": 0}
    assert len(rows_of(**main)) == 2 * 2 * (6 + 2)
    marks = {f"g_{criterion}": float(mark) for criterion, mark in SIX.items()}
    marks["g_score"] = pytest.approx(20 / 6)
    for order, vote in ((f"{CHATCITE},{ZERO_SHOT}", 1.0), (f"{ZERO_SHOT},{CHATCITE}", 0.0)):
        found = values(rows_of(**main, order=order, system="chatcite"))
        assert found == {**marks, "g_vote": vote}
    alone = values(rows_of(candidate_set="small", repeat=1))
    assert alone == {"g_score": 2.0, **{f"g_{criterion}": 2.0 for criterion in CRITERIA}}


def test_measures_of_verdicts_name_their_judge_and_a_repeat_or_an_unjudged_section_has_none(month):
    rows_of, _ = month
    text_alone = {"judge": None, "candidate_set": None}
    first = {"task_id": FIRST, "system": "zero_shot"}
    by_verdict = values(rows_of(**first, judge="strict", candidate_set=None))
    assert by_verdict == {
        "citation_precision": 0.5,
        "citation_precision_partly": 0.5,
        "citation_precision_quoted": 0.5,
        "citation_recall": 0.5,
    }
    by_text = values(rows_of(**first, repeat=0, **text_alone))
    assert {"rouge1", "reference_coverage", "words"} <= by_text.keys()
    # The repeat says the same, and nobody judges its citations.
    assert values(rows_of(**first, repeat=1)) == by_text
    unjudged = values(rows_of(task_id=FIRST, system="chatcite", **text_alone))
    assert unjudged.keys() >= {"reference_coverage"}
    assert by_verdict.keys().isdisjoint(unjudged)


@cases("unit/evaluation/cases.toml", "rouge", ["gold", "text", "values"])
def test_values_are_the_fixed_ones(gold, text, values):
    expected = {name: 100 * value for name, value in zip(METRICS, values, strict=True)}
    assert rouge(gold, text) == pytest.approx(expected)


def test_the_floor_is_another_task_with_a_gold_section_and_always_the_same():
    golds = {"a": "Text.", "b": "Text.", "c": " ", "d": "Text."}
    assert floor_task("a", golds) in ("b", "d")
    assert floor_task("a", golds) == floor_task("a", dict(reversed(golds.items())))
    assert floor_task("a", {"a": "Text.", "c": ""}) is None
