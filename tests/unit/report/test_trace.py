"""How a section came about, as its trace tells it."""

from __future__ import annotations

import json
from typing import Any

from pipeline.report.trace import parse_trace
from tests.unit.evaluation.made_up import trace


def round_of(reference: int, text: str, **more: Any) -> dict[str, Any]:
    draft = {"choice": 1, "parent": 0, "text": text}
    return {"reference": reference, "drafts": [draft], "votes": [], "tallies": [0], "kept": [1], "cut": False, **more}


def test_a_round_tells_which_earlier_references_its_best_draft_lost() -> None:
    told = {"rounds": [round_of(1, "[Reference 1]"), round_of(3, "[Reference 3] (reference 1)"), round_of(2, "none")]}
    rounds = parse_trace(json.dumps(told), {1, 2, 3}).rounds
    assert [(each.earlier, list(each.lost)) for each in rounds] == [(0, []), (1, []), (2, [1, 3])]


def test_a_draft_that_the_guard_mended_lost_nothing() -> None:
    guard = {"choice": 1, "missing": [1], "out_of_range": [], "unknown_passages": 0, "made": [], "failure": None}
    told = {"rounds": [round_of(1, "[Reference 1]"), round_of(2, "[Reference 2]", guard=[guard | {"how": "repaired"}])]}
    assert [list(each.lost) for each in parse_trace(json.dumps(told), {1, 2}).rounds] == [[], []]
    told["rounds"][1]["guard"] = [guard | {"how": "kept"}]
    assert [list(each.lost) for each in parse_trace(json.dumps(told), {1, 2}).rounds] == [[], [1]]


def test_drafts_of_a_long_search_that_were_not_kept_are_cut_and_say_so() -> None:
    drafts = [{"choice": number, "parent": 0, "text": "x" * 400_000} for number in (1, 2)]
    told = {"rounds": [round_of(1, "") | {"drafts": drafts, "tallies": [1, 0]}]}
    kept, dropped = parse_trace(json.dumps(told), {1}).rounds[0].drafts
    assert kept.whole
    assert not dropped.whole
    assert len(dropped.paragraphs[0][0].text) == 401


def test_a_plan_of_litllm_and_what_was_mended_of_it() -> None:
    view = parse_trace(trace("litllm"), {1, 2, 3})
    assert list(view.plan) == [("what it does", [1]), ("how it differs", [])]
    assert "The plan named [Reference 9], which the task does not have." in view.notes
    assert view.has_steps


def test_groups_guard_and_revisions_of_the_grounded_system() -> None:
    view = parse_trace(trace("chatcite_grounded"), {1, 2, 3})
    assert list(view.groups) == [("Sparse", [1, 2]), ("Other", [3])]
    assert view.rounds[0].guards[0].startswith("draft 2 repaired; it did not cite [Reference 1]")
    assert list(view.revised) == [(2, "It was otherwise.")]
    assert list(view.failures) == [("evidence of reference 1", "no JSON")]


def test_a_system_without_a_trace_has_nothing_to_tell() -> None:
    assert not parse_trace("", {1}).has_steps
    assert not parse_trace(trace("zero_shot"), {1}).has_steps
