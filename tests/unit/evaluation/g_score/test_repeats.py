"""Repeats of sections: which are written, and how far their scores lie apart."""

from collections import Counter

import pytest

from pipeline import tables
from pipeline.engine.run import run_stage
from pipeline.errors import SettingError
from pipeline.evaluation.g_score.measures import spread
from pipeline.related_work.stages import KEY_ELEMENTS, SUMMARIES
from tests.scripted_llm import ScriptedLlm
from tests.unit.related_work.building import workspace, write_corpus

pytestmark = pytest.mark.slow

MONTH = "2024-05"
TASKS = {2: ["2403.00003", "2403.00001"], 1: ["2403.00001"], 3: ["2403.00006"]}
FEW = {"chatcite_samples": 2, "chatcite_votes": 1, "chatcite_kept": 1, "repeated_tasks": 2}
SYSTEMS = ("chatcite", "chatcite_no_reflection", "lead")


def written(llm, folder, repeats=3, repeated=""):
    """(Task, system, repeat) → section, of three tasks of which two are written so often."""
    settings = {"summary_repeats": repeats, "repeated_systems": repeated, **FEW}
    place = workspace(llm, folder, systems=",".join(SYSTEMS), **settings)
    write_corpus(place, TASKS)
    for stage in (KEY_ELEMENTS, SUMMARIES):
        run_stage(stage, place, MONTH)
    rows = place.root.rows(tables.SUMMARIES, MONTH)
    return {(row["task_id"], row["system"], row["repeat"]): row["text"] for row in rows}


@pytest.mark.parametrize(
    ("repeated", "systems"), [("", SYSTEMS[:2]), ("chatcite", SYSTEMS[:1])], ids=["all", "one"]
)
def test_first_tasks_are_written_again_by_systems_that_call_a_model_and_nothing_is_paid_twice(
    tmp_path, repeated, systems
):
    with ScriptedLlm() as llm:
        once = written(llm, tmp_path, 1)
        sections = written(llm, tmp_path, repeated=repeated)
    assert once.items() < sections.items()
    assert Counter((task[9], system) for task, system, _ in sections) == {
        (task, system): 3 if system in systems and task != "3" else 1
        for task in "123"
        for system in SYSTEMS
    }
    assert len({sections["2405.00001#S2", "chatcite", repeat] for repeat in range(3)}) == 3
    paid = Counter(
        (str(body["messages"]), body["seed"] + place)
        for body in llm.requests
        if "response_format" not in body
        for place in range(body.get("n", 1))
    )
    assert set(paid.values()) == {1}


def test_a_repeated_system_that_does_not_write_is_refused(tmp_path):
    with ScriptedLlm() as llm, pytest.raises(SettingError, match="REPEATED_SYSTEMS has litllm"):
        written(llm, tmp_path, repeated="chatcite,litllm")


def scores(values, system="chatcite"):
    return [
        {"task_id": task, "system": system, "metric": "g_score", "repeat": repeat, "value": value}
        for task, of_task in values.items()
        for repeat, value in enumerate(of_task)
    ]


def test_a_task_that_lacks_a_score_is_in_no_run_and_what_was_not_repeated_has_no_spread():
    (found,) = spread(scores({"a": [1.0, 3.0], "b": [5.0, None], "c": [2.0]}))
    assert (found.runs, found.tasks) == ((1.0, 3.0), 1)
    for values in ({}, {"a": [3.0]}, {"a": [3.0, None], "b": [None, 2.0]}):
        assert spread(scores(values)) == []
