"""Results of people's grades beside a judge's: numbers that can be worked out by hand."""

import pytest

from pipeline.evaluation.answers.people_measures import grade_results
from tests.unit.evaluation.answers.graded import grade

GRADES = [
    grade(["correct", "wrong"], ["held"], number=1, system="alpha"),
    grade(["correct"], ["not"], number=1, system="beta"),
    grade(["not_checkable"], ["partly"], number=2, system="alpha"),
    grade(gold=["not"], number=2, system="beta", outcome="abstained"),
]


def rows(number, system, text, letters):
    """A letter for each grader: "ccw" are the verdicts correct, correct, wrong of graders 0, 1, 2;
    a dot is a comment without a verdict.
    """
    words = {
        "c": "correct",
        "p": "partly",
        "w": "wrong",
        "x": "not_checkable",
        "h": "held",
        "n": "not",
        ".": None,
    }
    return [
        {
            "question_id": f"q{number}",
            "system": system,
            "part": "claim" if text.startswith("Claim") else "gold",
            "text": text,
            "study": "pilot",
            "grader": f"{grader}",
            "verdict": words[letter],
            "comment": "I cannot tell." if letter == "." else None,
        }
        for grader, letter in enumerate(letters)
    ]


ROWS = [
    *rows(1, "alpha", "Claim 1.", "ccw"),
    *rows(1, "alpha", "Claim 2.", "ccp"),
    *rows(1, "beta", "Claim 1.", "cw"),
    *rows(2, "alpha", "Claim 1.", "xxx"),
    *rows(1, "alpha", "Fact 1.", "hhh"),
    *rows(1, "beta", "Fact 1.", "nnp"),
]


def test_a_verdict_that_is_not_there_counts_for_nothing():
    found = grade_results([*ROWS, *rows(2, "alpha", "Fact 1.", "...")], GRADES)
    assert (found.comments, found.verdicts) == (3, len(ROWS))
    assert found.accuracy == grade_results(ROWS, GRADES).accuracy
    comments = grade_results(rows(1, "alpha", "Claim 1.", "."), GRADES).accuracy["judge"]["claim"]
    assert (comments.undecided, comments.units, comments.same) == (0, 0, None)
    assert comments.alpha.value is None


def test_how_often_the_judge_is_right_where_most_graders_agree():
    """Of three decided claims the judge has two (it calls one wrong that people call correct); of
    two gold claims both; on one claim graders are split.
    """
    found = grade_results(ROWS, GRADES).accuracy["judge"]
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


def test_systems_are_compared_on_the_claims_of_each_grader():
    """Of alpha's claims on question 1, graders 0 and 1 have 1 and 1, grader 2 has 0 and 1/2;
    question 2 has 0 for all. The judge has 1/2 and 0 of the same claims.
    """
    found = {system.system: system for system in grade_results(ROWS, GRADES).systems}
    alpha = found["alpha"]
    assert alpha.people["factual"].value == pytest.approx(((1 + 1 + 0.25) / 3 + 0) / 2)
    assert alpha.judged["factual"].value == pytest.approx((0.5 + 0) / 2)
    # beta abstains from question 2, whose gold claims nobody graded: one question.
    assert found["beta"].people["coverage"].count == 1
