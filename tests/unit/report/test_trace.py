"""How a section came about, as its trace tells it."""

import json

import pytest

from pipeline.report.task_page import read_trace
from tests.unit.evaluation.made_up import trace


def round_of(reference, text, **more):
    draft = {"choice": 1, "parent": 0, "text": text}
    return {
        "reference": reference,
        "drafts": [draft],
        "votes": [],
        "tallies": [0],
        "kept": [1],
        "cut": False,
        **more,
    }


def test_drafts_that_were_not_kept_are_cut_and_say_so():
    drafts = [{"choice": number, "parent": 0, "text": "x" * 4_000} for number in (1, 2)]
    told = {"rounds": [round_of(1, "") | {"drafts": drafts, "tallies": [1, 0]}]}
    kept, dropped = read_trace(json.dumps(told), {1}).rounds[0].drafts
    assert (kept.whole, dropped.whole) == (True, False)
    assert len(dropped.paragraphs[0][0].text) == 401


def test_what_was_repaired_of_a_plan_is_told():
    view = read_trace(trace("litllm_plan"), {1, 2, 3})
    assert "The plan named [Reference 9], which the task does not have." in view.notes
    assert view.has_steps


def test_a_plan_that_could_not_be_read_is_a_failure():
    assert read_trace(trace("litllm_plan"), {1, 2, 3}).failure == "no JSON"


@pytest.mark.parametrize("text", [None, "", trace("zero_shot")])
def test_a_system_without_a_trace_has_nothing_to_tell(text):
    assert not read_trace(text, {1}).has_steps
