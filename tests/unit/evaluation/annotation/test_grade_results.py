"""Results of people's grades beside a judge's: numbers that can be worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.evaluation.answers.people import Part
from pipeline.evaluation.answers.people_measures import (
    ClaimKey,
    grade_results,
    judge_accuracy,
    majority,
    verdicts_by_claim,
)
from tests.unit.evaluation.answers.graded import grade

GRADES = [
    grade(["correct", "wrong"], ["held"], number=1, system="alpha"),
    grade(["correct"], ["not"], number=1, system="beta"),
    grade(["not_checkable"], ["partly"], number=2, system="alpha"),
    grade(gold=["not"], number=2, system="beta", outcome="abstained"),
]


def unit(number: int, system: str, part: Part, place: int = 1) -> ClaimKey:
    return ClaimKey(
        f"q{number}", system, part, f"{'Claim' if part == 'claim' else 'Fact'} {place}."
    )


def row(
    claim: ClaimKey, grader: int, verdict: str | None, comment: str | None = None
) -> dict[str, Any]:
    return {
        **claim._asdict(),
        "study": "pilot",
        "grader": f"{grader}",
        "verdict": verdict,
        "comment": comment,
    }


def rows(*given: tuple[ClaimKey, str]) -> list[dict[str, Any]]:
    """A letter for each grader: "ccw" are the verdicts correct, correct, wrong of graders 0, 1,
    2.
    """
    words = {
        "c": "correct",
        "p": "partly",
        "w": "wrong",
        "x": "not_checkable",
        "h": "held",
        "n": "not",
    }
    return [
        row(claim, n, words[letter]) for claim, letters in given for n, letter in enumerate(letters)
    ]


ROWS = rows(
    (unit(1, "alpha", "claim", 1), "ccw"),
    (unit(1, "alpha", "claim", 2), "ccp"),
    (unit(1, "beta", "claim"), "cw"),
    (unit(2, "alpha", "claim"), "xxx"),
    (unit(1, "alpha", "gold"), "hhh"),
    (unit(1, "beta", "gold"), "nnp"),
)
VERDICTS = verdicts_by_claim(ROWS)


def test_a_verdict_that_is_not_there_counts_for_nothing() -> None:
    comments = [row(claim, 3, None, "I cannot tell.") for claim in VERDICTS]
    assert verdicts_by_claim([*ROWS, *comments]) == VERDICTS
    assert grade_results([*ROWS, *comments], GRADES).comments == len(comments)
    judge = judge_accuracy(GRADES, verdicts_by_claim(comments))["claim"]
    assert (judge.undecided, judge.units, judge.same, judge.alpha.value) == (0, 0, None, None)
    assert judge_accuracy(GRADES, {})["claim"].units == 0


def test_most_graders_decide_and_a_tie_decides_nothing() -> None:
    found = majority(VERDICTS)
    assert found[unit(1, "alpha", "claim", 1)] == "correct"
    assert unit(1, "beta", "claim") not in found
    assert len(found) == 5


def test_how_often_the_judge_is_right() -> None:
    """Of three decided claims the judge has two (it calls one wrong that people call correct); of
    two gold claims both; one claim is undecided.
    """
    found = judge_accuracy(GRADES, VERDICTS)
    claims, gold = found["claim"], found["gold"]
    assert (claims.units, claims.same, claims.undecided) == (3, 2 / 3, 1)
    assert claims.confusion == {
        ("correct", "correct"): 1,
        ("correct", "wrong"): 1,
        ("not_checkable", "not_checkable"): 1,
    }
    assert claims.low is not None
    assert claims.high is not None
    assert claims.low <= 2 / 3 <= claims.high
    assert (gold.units, gold.same, gold.low) == (2, 1.0, None)
    # Observed disagreement 1/3. Of six verdicts 3 are correct, 1 wrong, 2 not checkable: by chance
    # 1 - (6 + 2) / 30.
    assert claims.alpha.value == pytest.approx(1 - (1 / 3) / (22 / 30))


def test_systems_are_compared_on_the_claims_of_each_grader() -> None:
    """Of alpha's claims on question 1, graders 0 and 1 have 1 and 1, grader 2 has 0 and 1/2;
    question 2 has 0 for all. The judge has 1/2 and 0 of the same claims.
    """
    found = {system.system: system for system in grade_results(ROWS, GRADES).systems}
    alpha = found["alpha"]
    assert alpha.people["factual"].value == pytest.approx(((1 + 1 + 0.25) / 3 + 0) / 2)
    assert alpha.judged["factual"].value == pytest.approx((0.5 + 0) / 2)
    # beta abstains from question 2, whose gold claims nobody graded: one question.
    assert found["beta"].people["coverage"].count == 1
