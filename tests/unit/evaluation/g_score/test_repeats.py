"""Repeats of sections: which calls they take, how they are marked and scored, and how far they lie
apart.
"""

import math
from collections import Counter
from dataclasses import asdict
from statistics import fmean, stdev, variance

import pytest

from pipeline import tables
from pipeline.engine.run import State, run_stage, state
from pipeline.errors import SettingError
from pipeline.evaluation.g_score.measures import Spread, spread
from pipeline.evaluation.stages import CITATION_SUPPORT, G_SCORES, SCORES
from pipeline.related_work.stages import KEY_ELEMENTS, SUMMARIES
from tests.models_file import write_models
from tests.month_tables import write_table
from tests.scripted_llm import ScriptedLlm
from tests.unit.related_work.building import workspace, write_corpus

pytestmark = pytest.mark.slow

MONTH = "2024-05"
FIRST, SECOND, THIRD = (f"2405.0000{number}#S2" for number in (1, 2, 3))
TASKS = {
    2: ["2403.00003", "2403.00001"],
    1: ["2403.00001", "2403.00002", "2403.00004"],
    3: ["2403.00006", "2403.00002"],
}
FEW = {"chatcite_samples": 2, "chatcite_votes": 1, "chatcite_kept": 1, "judge_repeats": 1}
SYSTEMS = "chatcite,chatcite_no_reflection,lead"
JUDGE = "strict"
STAGES = (KEY_ELEMENTS, SUMMARIES, G_SCORES, CITATION_SUPPORT, SCORES)


def prepared(llm, folder, **settings):
    given = {"systems": SYSTEMS, "summary_repeats": 3, "repeated_tasks": 2, **FEW, **settings}
    place = workspace(llm, folder, **given)
    write_corpus(place, TASKS)
    write_table(place.root, tables.PASSAGES, "2024-03", [])
    return place


@pytest.fixture(scope="module")
def repeated(tmp_path_factory):
    """A month of which two of three tasks are written three times."""
    folder = tmp_path_factory.mktemp("repeated")
    with ScriptedLlm(models=("scripted", JUDGE)) as llm:
        models = write_models(folder / "settings", llm.url, JUDGE)
        place = prepared(llm, folder, models=models, judges=JUDGE)
        for stage in STAGES:
            run_stage(stage, place, MONTH)
        yield place, llm


def sections(place):
    rows = place.root.rows(tables.SUMMARIES, MONTH)
    return {(row["task_id"], row["system"], row["repeat"]): row["text"] for row in rows}


def test_the_first_tasks_are_written_again_by_each_system_that_calls_a_model(repeated):
    written = sections(repeated[0])
    assert Counter((task, system) for task, system, _ in written) == {
        (task, system): 1 if system == "lead" or task == THIRD else 3
        for task in (FIRST, SECOND, THIRD)
        for system in SYSTEMS.split(",")
    }
    for system in ("chatcite", "chatcite_no_reflection"):
        assert len({written[FIRST, system, repeat] for repeat in range(3)}) == 3


def test_repeat_0_is_the_section_that_is_written_once_and_nothing_is_paid_twice(tmp_path):
    with ScriptedLlm() as llm:
        place = prepared(llm, tmp_path, summary_repeats=1)
        for stage in STAGES[:2]:
            run_stage(stage, place, MONTH)
        once = sections(place)
        more = prepared(llm, tmp_path)
        assert state(SUMMARIES, more, MONTH) is State.STALE
        run_stage(SUMMARIES, more, MONTH)
        assert state(SUMMARIES, prepared(llm, tmp_path, summary_repeats=4), MONTH) is State.STALE
    assert once.items() < sections(more).items()
    paid = Counter(
        (str(body["messages"]), body["seed"] + place)
        for body in llm.requests
        if "response_format" not in body
        for place in range(body.get("n", 1))
    )
    assert set(paid.values()) == {1}


def test_a_repeat_is_marked_in_the_sets_of_which_every_writer_with_a_model_repeats(tmp_path):
    with ScriptedLlm() as llm:
        place = prepared(llm, tmp_path, repeated_systems="chatcite")
        for stage in STAGES[:3]:
            run_stage(stage, place, MONTH)
    repeats = {(system, repeat) for _, system, repeat in sections(place)}
    assert repeats == {("chatcite", 0), ("chatcite", 1), ("chatcite", 2)} | {
        ("chatcite_no_reflection", 0),
        ("lead", 0),
    }
    marked = place.root.rows(tables.G_SCORES, MONTH, ["candidate_set", "section_repeat"])
    assert {(row["candidate_set"], row["section_repeat"]) for row in marked} == {
        ("main", 0), ("main", 1), ("main", 2), ("ablations", 0),
    }  # fmt: skip


def test_a_repeated_system_that_does_not_write_is_refused(tmp_path):
    with ScriptedLlm() as llm:
        place = prepared(llm, tmp_path, repeated_systems="chatcite,litllm")
        run_stage(KEY_ELEMENTS, place, MONTH)
        with pytest.raises(SettingError, match="CITELOOM_REPEATED_SYSTEMS has litllm"):
            run_stage(SUMMARIES, place, MONTH)


def test_each_repeat_is_marked_beside_the_same_writers_in_the_same_order(repeated):
    place, llm = repeated
    rows = place.root.rows(tables.G_SCORES, MONTH)
    columns = ("task_id", "candidate_set", "section_repeat", "judge")
    assert [tuple(row[name] for name in columns) for row in rows] == [
        (task, candidates, repeat, JUDGE)
        for task in (FIRST, SECOND, THIRD)
        for candidates in ("ablations", "main")
        for repeat in range(1 if task == THIRD else 3)
    ]
    orders = {(row["task_id"], row["candidate_set"]): row["order"] for row in rows}
    assert all(row["order"] == orders[row["task_id"], row["candidate_set"]] for row in rows)
    assert sorted(orders[FIRST, "main"]) == ["chatcite@scripted", "lead"]
    text = sections(place)
    shown = [
        body["messages"][-1]["content"]
        for body in llm.requests
        if "response_format" in body and text[FIRST, "chatcite", 2] in str(body["messages"])
    ]
    assert [text[FIRST, "lead", 0] in prompt for prompt in shown].count(True) == 1


def test_a_repeat_has_its_own_rouge_and_coverage_but_nobody_judges_its_citations(repeated):
    place, _ = repeated
    once, again = (
        {
            row["metric"]
            for row in place.root.rows(tables.SCORES, MONTH)
            if (row["task_id"], row["system"], row["repeat"]) == (FIRST, "chatcite", repeat)
            and row["candidate_set"] is None
        }
        for repeat in (0, 1)
    )
    assert {"rouge1", "rougeLsum", "reference_coverage", "words"} <= again <= once
    assert not [name for name in again if name.startswith(("citation_precision", "citation_rec"))]
    citations = place.root.rows(tables.CITATION_SUPPORT, MONTH)
    cited = {(row["task_id"], row["system"], row["sentence"], row["number"]) for row in citations}
    assert {task for task, *_ in cited} == {FIRST, SECOND, THIRD}
    assert len(cited) == len(citations)


def scores(values, system="chatcite"):
    return [
        {"task_id": task, "system": system, "metric": "g_score", "repeat": repeat, "value": value}
        for task, of_task in values.items()
        for repeat, value in enumerate(of_task)
    ]


def test_spread_is_over_runs_and_within_tasks():
    values = {"a": [1.0, 2.0, 3.0, 5.0], "b": [2.0, 2.0, 4.0, 3.0]}
    runs = (1.5, 2.0, 3.5, 4.0)
    pooled = math.sqrt(fmean(variance(of_task) for of_task in values.values()))
    found = spread(scores(values)[::-1])
    expected = Spread("chatcite", 2, runs, 2.75, stdev(runs), pooled)
    assert [asdict(each) for each in found] == [pytest.approx(asdict(expected))]


def test_a_task_that_lacks_a_score_is_in_no_run_and_what_was_not_repeated_has_no_spread():
    (found,) = spread(scores({"a": [1.0, 3.0], "b": [5.0, None], "c": [2.0]}))
    assert (found.runs, found.tasks) == ((1.0, 3.0), 1)
    for values in ({}, {"a": [3.0]}, {"a": [3.0, None], "b": [None, 2.0]}):
        assert spread(scores(values)) == []


def test_systems_and_metrics_have_spreads_of_their_own():
    rows = scores({"a": [1.0, 2.0]}) + scores({"a": [4.0, 4.0]}, "lead")
    rows += [row | {"metric": "rouge1", "value": 9.0} for row in rows]
    found = [(each.system, each.mean) for each in spread(rows)]
    assert found == [("chatcite", 1.5), ("lead", 4.0)]
    assert [each.mean for each in spread(rows, "rouge1")] == [9.0, 9.0]
