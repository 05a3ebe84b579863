"""Judges that are measured on labelled claims: a scripted endpoint whose verdicts are known."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from pipeline.evaluation.judge_check.labelled_claims import LabelledSet, read_sets
from pipeline.evaluation.judge_check.verify import (
    CITATION_SUPPORT,
    CLAIM_GRADE,
    UNREADABLE,
    SetResult,
    TaskName,
    estimate_cost,
    verify_model,
)
from pipeline.llm.models import get_model
from tests.scripted_llm import Asked, Rule, ScriptedLlm
from tests.unit.evaluation.answers.graded import fence, form_of
from tests.unit.evaluation.judge_check.labelled import write_citation_integrity, write_scifact
from tests.unit.evaluation.made_up import workspace

RIGHT = {
    "Finding": {"SUPPORT": "supported", "REFUTE": "partly", "NEI": "not"},
    "ClaimFinding": {"SUPPORT": "correct", "REFUTE": "wrong", "NEI": "not_checkable"},
}


@pytest.fixture
def sets(tmp_path: Path) -> list[LabelledSet]:
    """Four citing sentences and three claims of SciFact."""
    write_citation_integrity(tmp_path / "labelled")
    write_scifact(tmp_path / "labelled")
    return read_sets(tmp_path / "labelled", "dev")


def knowing(sets: list[LabelledSet]) -> Rule:
    """A judge that knows every label and quotes nothing."""
    by_text = {text: claim for each in sets for claim in each.claims for text in (claim.marked, claim.claim)}

    def rule(asked: Asked) -> str | None:
        if form_of(asked) not in RIGHT:
            return None
        claim = by_text[fence(asked, "sentence") or fence(asked, "claim")]
        verdict = RIGHT[form_of(asked)][claim.label]
        return json.dumps({"quote": "", "verdict": verdict})

    return rule


def verified(
    folder: Path, llm: ScriptedLlm, sets: list[LabelledSet], **settings: object
) -> Mapping[TaskName, Sequence[SetResult]]:
    """The results of the default model by task, for each set."""
    work = workspace(folder / "data", llm_url=llm.url, llm_model=llm.model, **settings)
    return verify_model(work, get_model(work.settings), sets)


def test_a_judge_that_knows_the_labels_has_1_at_both_tasks_and_is_shown_none(
    tmp_path: Path, sets: list[LabelledSet]
) -> None:
    with ScriptedLlm(knowing(sets)) as llm:
        found = verified(tmp_path, llm, sets, llm_price="2/8")
        prompts = [Asked(body, 0).prompt for body in llm.requests]
    integrity, scifact = found["claim_grade"]
    citing, scifact_citing = found["citation_support"]
    assert {result.measures.macro_f1.value for result in (integrity, scifact, citing)} == {1}
    # What contradicts a claim of SciFact and what says nothing of it is one verdict for the judge of citations.
    assert scifact_citing.measures.macro_f1 is None
    assert scifact_citing.measures.support_macro_f1 is not None
    assert integrity.measures.confusion == {
        "SUPPORT": {"correct": 2}, "REFUTE": {"wrong": 1}, "NEI": {"not_checkable": 1},
    }  # fmt: skip
    assert (integrity.calls, scifact.calls) == (4, 3)
    assert integrity.money == pytest.approx((2 * integrity.prompt_tokens + 8 * integrity.completion_tokens) / 1e6)
    assert len(prompts) == 2 * 7
    assert not [word for word in ("SUPPORT", "REFUTE", "CONTRADICT", "NEI") if word in " ".join(prompts)]


def test_planned_calls_are_the_calls_that_are_made_and_an_estimate_makes_none(
    tmp_path: Path, sets: list[LabelledSet]
) -> None:
    with ScriptedLlm(knowing(sets)) as llm:
        work = workspace(tmp_path / "data", llm_url=llm.url, llm_model=llm.model, llm_price="2/8")
        model = get_model(work.settings)
        planned = estimate_cost(work, model, sets)
        assert llm.requests == []
        found = verify_model(work, model, sets)
        again = estimate_cost(work, model, sets)
        verify_model(work, model, sets)
        assert len(llm.requests) == planned.calls == 14
    assert planned.calls == sum(result.calls for results in found.values() for result in results)
    assert (planned.answered, again.answered, again.money) == (0, 14, 0)
    assert planned.money is not None
    assert planned.money > 0


def test_answers_that_cannot_be_read_count_as_wrong(tmp_path: Path, sets: list[LabelledSet]) -> None:
    with ScriptedLlm(lambda asked: "no JSON" if form_of(asked) == "ClaimFinding" else None, knowing(sets)) as llm:
        (integrity, _) = verified(tmp_path, llm, sets)["claim_grade"]
    assert integrity.measures.macro_f1.high == 0
    assert integrity.measures.confusion["SUPPORT"] == {UNREADABLE: 2}
    assert integrity.calls == 2 * 4, "every answer was repaired once"


def test_every_verdict_of_a_task_has_a_label() -> None:
    assert {tuple(labels) for labels in CITATION_SUPPORT.labels.values()} == {("supported", "partly", "not")}
    assert {tuple(labels) for labels in CLAIM_GRADE.labels.values()} == {
        ("correct", "partly", "wrong", "not_checkable")
    }
