"""The stage `scores`: ROUGE, words, measures of citations and judgements in long form, without a
model.
"""

from typing import Any

import pytest

from pipeline import tables
from pipeline.engine.run import run_stage
from pipeline.evaluation.g_score.judge import CRITERIA
from pipeline.evaluation.rouge import FLOOR, rouge
from pipeline.evaluation.stages import SCORES
from tests.month_tables import write_table
from tests.unit.evaluation.made_up import GOLD, judgement, summary, task, workspace

MONTH = "2024-03"
SYSTEMS = ("chatcite", "zero_shot")
FIRST, SECOND = "2403.90001#S2", "2403.90002#S2"
Row = dict[str, Any]


CHATCITE, ZERO_SHOT = "chatcite@some-model", "zero_shot@some-model"
MARKS = {ZERO_SHOT: 4, CHATCITE: 2}


def support(number, verdict, task_id=FIRST, system="zero_shot"):
    return {
        "task_id": task_id,
        "system": system,
        "model": "some-model",
        "sentence": number,
        "number": number,
        "verdict": verdict,
        "unjudged": None if verdict else "over_the_limit",
        "quote": "what the passage says",
        "quote_found": True,
        "judge": "strict" if verdict else None,
    }


def sentence(*references):
    text = "They say so " + " ".join(f"[Reference {number}]" for number in references) + "."
    return {"text": text, "references": list(references)}


def scored(folder, tasks, judgements=(), supports=()):
    """SCORES of a month in which both systems wrote for every task, at an endpoint where nobody
    listens.
    """
    work = workspace(folder, llm_url="http://127.0.0.1:9/v1", llm_model="nobody")
    write_table(work.root, tables.RELATED_WORK_TASKS, MONTH, tasks)
    rows = [
        {**summary(row, system), "sentences": [sentence(1), sentence(2)]}
        for system in SYSTEMS
        for row in reversed(tasks)
    ]
    write_table(work.root, tables.SUMMARIES, MONTH, rows)
    write_table(work.root, tables.G_SCORES, MONTH, judgements)
    write_table(work.root, tables.CITATION_SUPPORT, MONTH, supports)
    return work, run_stage(SCORES, work, MONTH)


def rows_of(work, **wanted):
    rows = work.root.rows(tables.SCORES, MONTH)
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def test_rouge_and_words_are_there_for_every_section_and_name_no_judge(tmp_path):
    work, _ = scored(tmp_path, [task("2403.90001"), task("2403.90002")])
    for metric in ("rouge1", "rouge2", "rougeL", "rougeLsum", "words"):
        found = [row for row in rows_of(work, metric=metric) if row["system"] != FLOOR]
        assert [(row["task_id"], row["system"]) for row in found] == [
            (each, system) for each in (FIRST, SECOND) for system in SYSTEMS
        ]
        assert {
            (row["judge"], row["candidate_set"], row["order"], row["repeat"]) for row in found
        } == {(None, None, None, 0)}
    zero_shot = {
        row["metric"]: row["value"] for row in rows_of(work, task_id=FIRST, system="zero_shot")
    }
    assert zero_shot["rouge1"] == pytest.approx(
        100.0
    )  # the made-up baseline writes the gold section
    assert zero_shot["words"] == len(GOLD.split())


def test_another_gold_section_is_the_floor_of_rouge_and_a_task_without_one_has_no_rouge(
    tmp_path,
):
    other = {**task("2403.90002"), "gold": "Words on something else [Reference 1]."}
    work, _ = scored(tmp_path, [task("2403.90001"), other, {**task("2403.90003"), "gold": ""}])
    floor = {row["metric"]: row["value"] for row in rows_of(work, task_id=FIRST, system=FLOOR)}
    assert floor == rouge(GOLD, other["gold"])
    without_gold = {row["metric"] for row in rows_of(work, task_id="2403.90003#S2")}
    assert "words" in without_gold
    assert not [metric for metric in without_gold if metric.startswith("rouge")]
    alone, _ = scored(tmp_path / "alone", [task("2403.90001")])
    assert rows_of(alone, system=FLOOR) == []


def test_a_judgement_becomes_a_row_for_every_system_and_metric_and_has_no_vote_alone(
    tmp_path,
):
    judgements = [
        judgement(FIRST, {CHATCITE: 2}, candidate_set="small", section_repeat=1),
        judgement(FIRST, {CHATCITE: 2, ZERO_SHOT: 4}, CHATCITE, repeat=1),
        judgement(FIRST, MARKS, ZERO_SHOT),
    ]
    work, _ = scored(tmp_path, [task("2403.90001")], judgements)
    together = rows_of(work, judge="strict", candidate_set="main", repeat=0)
    assert len(together) == 2 * 2 * (6 + 2)
    assert {row["order"] for row in together} == {
        f"{CHATCITE},{ZERO_SHOT}",
        f"{ZERO_SHOT},{CHATCITE}",
    }
    assert [
        row["value"]
        for row in together
        if (row["metric"], row["system"]) == ("g_score", "chatcite")
    ] == [2.0, 2.0]
    assert sorted(
        row["value"] for row in together if (row["metric"], row["system"]) == ("g_vote", "chatcite")
    ) == [0.0, 1.0]
    small = rows_of(work, candidate_set="small", repeat=1)
    alone = {row["metric"]: row["value"] for row in small}
    assert alone == {"g_score": 2.0, **{f"g_{criterion}": 2.0 for criterion in CRITERIA}}


def test_measures_of_verdicts_name_their_judge_and_the_others_none(tmp_path):
    supports = [support(1, "supported"), support(2, "not"), support(3, None)]
    work, _ = scored(tmp_path, [task("2403.90001")], supports=supports)
    zero_shot = {row["metric"]: row for row in rows_of(work, system="zero_shot")}
    assert zero_shot["citation_precision"]["value"] == 0.5
    assert (
        zero_shot["citation_precision"]["judge"]
        == zero_shot["citation_recall"]["judge"]
        == "strict"
    )
    assert zero_shot["reference_coverage"]["judge"] is None
    chatcite = {row["metric"] for row in rows_of(work, system="chatcite")}
    assert "citation_precision" not in chatcite
    assert "reference_coverage" in chatcite


def test_rows_are_sorted(tmp_path):
    rows = [
        judgement(each, MARKS, ZERO_SHOT, repeat=repeat, judge=judge)
        for judge in ("b", "a")
        for repeat in (1, 0)
        for each in (SECOND, FIRST)
    ]
    work, _ = scored(
        tmp_path, [task("2403.90002"), task("2403.90001")], rows, [support(1, "supported")]
    )
    keys = [
        (
            row["task_id"],
            row["system"],
            row["metric"],
            row["candidate_set"] or "",
            row["judge"] or "",
            row["repeat"],
        )
        for row in rows_of(work)
    ]
    assert keys == sorted(keys)


def test_an_empty_section_has_scores_of_0_and_one_whose_task_is_gone_is_in_the_ledger(
    tmp_path,
):
    work, _ = scored(tmp_path, [task("2403.90001")])
    empty = {**summary(task("2403.90001"), "zero_shot"), "text": "", "sentences": []}
    write_table(
        work.root, tables.SUMMARIES, MONTH, [empty, summary(task("2403.90002"), "zero_shot")]
    )
    outcome = run_stage(SCORES, work, MONTH, force=True)
    found = {row["metric"]: row["value"] for row in rows_of(work, system="zero_shot")}
    assert (found["rouge1"], found["words"], found["reference_coverage"]) == (0.0, 0.0, 0.0)
    assert dict(outcome.left_out) == {"task_gone": 1}
    assert {row["task_id"] for row in rows_of(work)} == {FIRST}
