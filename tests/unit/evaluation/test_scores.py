"""The stage `scores`: ROUGE, words, measures of citations and judgements in long form, without a
model.
"""

import pytest

from pipeline import tables
from pipeline.engine.run import run_stage
from pipeline.evaluation.g_score.judge import CRITERIA
from pipeline.evaluation.rouge import FLOOR, METRICS, rouge
from pipeline.evaluation.stages import SCORES
from tests.month_tables import write_table
from tests.unit.evaluation.made_up import GOLD, judgement, summary, task, workspace

MONTH = "2024-03"
SYSTEMS = ("chatcite", "zero_shot")
FIRST, SECOND, THIRD = (task(f"2403.9000{number}") for number in (1, 2, 3))
FIRST_ID = FIRST["task_id"]
CHATCITE, ZERO_SHOT = "chatcite@some-model", "zero_shot@some-model"
MARKS = {ZERO_SHOT: 4, CHATCITE: 2}


def support(number, verdict):
    """A row of `citation_support` on the first task."""
    return {
        "task_id": FIRST_ID,
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


def scored(folder, *tasks, judgements=(), supports=(), sections=None):
    """(Rows that have values, the run's outcome) of a month in which both systems wrote for every
    task, at an endpoint where nobody listens.
    """
    work = workspace(folder, llm_url="http://127.0.0.1:9/v1", llm_model="nobody")
    sentences = [{"text": f"So [Reference {n}].", "references": [n]} for n in (1, 2)]
    if sections is None:
        sections = [
            {**summary(row, system), "sentences": sentences}
            for system in SYSTEMS
            for row in reversed(tasks)
        ]
    write_table(work.root, tables.RELATED_WORK_TASKS, MONTH, tasks)
    write_table(work.root, tables.SUMMARIES, MONTH, sections)
    write_table(work.root, tables.G_SCORES, MONTH, judgements)
    write_table(work.root, tables.CITATION_SUPPORT, MONTH, supports)
    outcome = run_stage(SCORES, work, MONTH)
    rows = work.root.rows(tables.SCORES, MONTH)

    def rows_of(**wanted):
        return [row for row in rows if row | wanted == row]

    return rows_of, outcome


def values(rows):
    return {row["metric"]: row["value"] for row in rows}


def test_rouge_and_words_are_there_for_every_section_and_name_no_judge(tmp_path):
    rows_of, _ = scored(tmp_path, SECOND, FIRST)
    for metric in (*METRICS, "words"):
        found = rows_of(metric=metric, judge=None, candidate_set=None, order=None, repeat=0)
        assert [(row["task_id"], row["system"]) for row in found if row["system"] != FLOOR] == [
            (each["task_id"], system) for each in (FIRST, SECOND) for system in SYSTEMS
        ]
    zero_shot = values(rows_of(task_id=FIRST_ID, system="zero_shot"))
    # The made-up baseline writes the gold section.
    assert zero_shot["rouge1"] == pytest.approx(100.0)
    assert zero_shot["words"] == len(GOLD.split())


def test_another_gold_section_is_the_floor_of_rouge_and_a_task_without_one_has_no_rouge(tmp_path):
    other = {**SECOND, "gold": "Words on something else [Reference 1]."}
    rows_of, _ = scored(tmp_path, FIRST, other, {**THIRD, "gold": ""})
    floor = values(rows_of(task_id=FIRST_ID, system=FLOOR))
    assert floor == rouge(GOLD, other["gold"])
    without_gold = values(rows_of(task_id=THIRD["task_id"]))
    assert "words" in without_gold
    assert not [metric for metric in without_gold if metric.startswith("rouge")]
    alone, _ = scored(tmp_path / "alone", FIRST)
    assert alone(system=FLOOR) == []


def test_a_judgement_becomes_a_row_for_every_system_and_metric_and_has_no_vote_alone(tmp_path):
    judgements = [
        judgement(FIRST_ID, {CHATCITE: 2}, candidate_set="small", section_repeat=1),
        judgement(FIRST_ID, {CHATCITE: 2, ZERO_SHOT: 4}, CHATCITE, repeat=1),
        judgement(FIRST_ID, MARKS, ZERO_SHOT),
    ]
    rows_of, _ = scored(tmp_path, FIRST, judgements=judgements)
    main = {"judge": "strict", "candidate_set": "main", "repeat": 0}
    assert len(rows_of(**main)) == 2 * 2 * (6 + 2)
    by_order = {f"{CHATCITE},{ZERO_SHOT}": (2.0, 1.0), f"{ZERO_SHOT},{CHATCITE}": (2.0, 0.0)}
    assert {row["order"] for row in rows_of(**main)} == {*by_order}
    for order, (score, vote) in by_order.items():
        found = values(rows_of(**main, order=order, system="chatcite"))
        assert (found["g_score"], found["g_vote"]) == (score, vote)
    alone = values(rows_of(candidate_set="small", repeat=1))
    assert alone == {"g_score": 2.0, **{f"g_{criterion}": 2.0 for criterion in CRITERIA}}


def test_measures_of_verdicts_name_their_judge_and_the_others_none(tmp_path):
    supports = [support(1, "supported"), support(2, "not"), support(3, None)]
    rows_of, _ = scored(tmp_path, FIRST, supports=supports)
    judges = {row["metric"]: row["judge"] for row in rows_of(system="zero_shot")}
    assert judges["citation_precision"] == judges["citation_recall"] == "strict"
    assert judges["reference_coverage"] is None
    assert values(rows_of(system="zero_shot"))["citation_precision"] == 0.5
    chatcite = values(rows_of(system="chatcite"))
    assert "citation_precision" not in chatcite
    assert "reference_coverage" in chatcite


def test_rows_are_sorted(tmp_path):
    judgements = [
        judgement(each["task_id"], MARKS, ZERO_SHOT, repeat=repeat, judge=judge)
        for judge in ("b", "a")
        for repeat in (1, 0)
        for each in (SECOND, FIRST)
    ]
    supports = [support(1, "supported")]
    rows_of, _ = scored(tmp_path, SECOND, FIRST, judgements=judgements, supports=supports)
    columns = ("task_id", "system", "metric", "candidate_set", "judge", "repeat")
    keys = [[row[name] or "" for name in columns[:-1]] + [row["repeat"]] for row in rows_of()]
    assert keys == sorted(keys)


def test_an_empty_section_has_scores_of_0_and_one_whose_task_is_gone_is_in_the_ledger(tmp_path):
    empty = {**summary(FIRST, "zero_shot"), "text": "", "sentences": []}
    rows_of, outcome = scored(tmp_path, FIRST, sections=[empty, summary(SECOND, "zero_shot")])
    found = values(rows_of(system="zero_shot"))
    assert (found["rouge1"], found["words"], found["reference_coverage"]) == (0.0, 0.0, 0.0)
    assert dict(outcome.left_out) == {"task_gone": 1}
    assert rows_of() == rows_of(task_id=FIRST_ID)
