"""How a section came about, as its trace tells it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from pipeline.report.task_page import read_trace
from tests.unit.evaluation.made_up import trace


def round_of(reference: int, text: str, **more: Any) -> dict[str, Any]:
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


def lost(told: dict[str, Any]) -> list[tuple[int, Sequence[int]]]:
    """For each round, how many references came before it, and those that its best draft lost."""
    return [(item.earlier, item.lost) for item in read_trace(json.dumps(told), {1, 2, 3}).rounds]


def test_a_round_tells_which_earlier_references_its_best_draft_lost() -> None:
    told = {
        "rounds": [
            round_of(1, "[Reference 1]"),
            round_of(3, "[Reference 3] (reference 1)"),
            round_of(2, "none"),
        ]
    }
    assert lost(told) == [(0, []), (1, []), (2, [1, 3])]


@pytest.mark.parametrize(("how", "missing"), [("repaired", []), ("patched", []), ("kept", [1])])
def test_a_draft_that_the_guard_repaired_lost_nothing(how: str, missing: list[int]) -> None:
    guard = {
        "choice": 1,
        "how": how,
        "missing": [1],
        "out_of_range": [],
        "unknown_passages": 0,
        "failure": None,
    }
    assert lost(
        {"rounds": [round_of(1, "[Reference 1]"), round_of(2, "[Reference 2]", guard=[guard])]}
    ) == [(0, []), (1, missing)]


def test_drafts_of_a_long_search_that_were_not_kept_are_cut_and_say_so() -> None:
    drafts = [{"choice": number, "parent": 0, "text": "x" * 400_000} for number in (1, 2)]
    told = {"rounds": [round_of(1, "") | {"drafts": drafts, "tallies": [1, 0]}]}
    kept, dropped = read_trace(json.dumps(told), {1}).rounds[0].drafts
    assert (kept.whole, dropped.whole) == (True, False)
    assert len(dropped.paragraphs[0][0].text) == 401


def test_what_was_repaired_of_a_plan_is_told() -> None:
    view = read_trace(trace("litllm"), {1, 2, 3})
    assert "The plan named [Reference 9], which the task does not have." in view.notes
    assert view.has_steps


def test_answers_that_could_not_be_read_are_failures() -> None:
    assert read_trace(trace("chatcite_grounded"), {1, 2, 3}).failures == [
        ("evidence of reference 1", "no JSON")
    ]


@pytest.mark.parametrize("text", [None, "", trace("zero_shot")])
def test_a_system_without_a_trace_has_nothing_to_tell(text: str | None) -> None:
    assert not read_trace(text, {1}).has_steps
