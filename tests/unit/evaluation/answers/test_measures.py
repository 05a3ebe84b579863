"""Measures of answers and systems against numbers that were worked out by hand."""

import pytest

from pipeline.answering.answer import plain_answer
from pipeline.corpus.nouns import Answer
from pipeline.errors import SettingError
from pipeline.evaluation.answers.measures import (
    age_of,
    answer_measures,
    coverage,
    factual,
    gold_shown_by_hop,
    hop_gains,
    latest_cutoff,
)
from tests.cases import cases
from tests.unit.evaluation.answers.graded import claim_row, gold_row, grade, grounded, question

CASES = "unit/evaluation/cases.toml"


def test_partial_points_of_claims_and_gold_claims():
    """Two correct, one partly, one wrong, one not checkable, one unread: 2.5 of 5, and 2.5 of 4
    that were checkable.
    Of gold claims one held, one partly, two not, one unread: 1.5 of 4.
    """
    claims = ["correct", "correct", "partly", "wrong", "not_checkable", None]
    assert answer_measures(grade(claims, ["held", "partly", "not", "not", None])) == {
        "factual": 0.5,
        "factual_full": 0.4,
        "factual_checkable": 0.625,
        "factual_quoted": 0.0,
        "claims": 6.0,
        "coverage": 0.375,
        "coverage_full": 0.25,
        "coverage_quoted": 0.0,
    }


def test_a_verdict_counts_as_quoted_where_three_words_stand_where_they_should():
    claims = [
        claim_row("a", "correct", "every boat floats", "passage"),
        claim_row("b", "correct", "every boat floats", None),
        claim_row("c", "correct", "boat floats", "gold"),
        claim_row("d", "partly", "a boat floats", "gold"),
    ]
    assert factual(claims)["factual_quoted"] == 1.5 / 4
    gold = [gold_row("a", "held", "it says so", True), gold_row("b", "held", "it says so", False)]
    assert coverage(gold)["coverage_quoted"] == 0.5


def test_what_nothing_could_be_computed_for_is_absent():
    found = answer_measures(grade(["correct"], [None]))
    assert (found["factual"], "coverage" in found) == (1.0, False)
    assert "factual_checkable" not in answer_measures(grade(["not_checkable"]))
    assert not [name for name in answer_measures(grade([None])) if name.startswith("factual")]
    assert answer_measures(grade(outcome="unreadable")) == {}


def test_gold_passages_are_found_by_the_hop_that_first_showed_one():
    asked = question(1, "A.", "B.", "C.", "D.")
    answered = grounded("Boats float.", [1, 2], [3])
    found = gold_shown_by_hop(asked, answered, {0: ["p2", "p3"], 1: ["p3"], 2: ["p8"], 3: []})
    assert found == ([1 / 3, 2 / 3], {0: 1, 1: 2, 2: None})


def test_a_search_that_found_nothing_has_shown_nothing_and_no_search_has_no_share():
    asked, gold = question(1, "A."), {0: ["p1"]}
    nothing = Answer("No.", (), queries=("boats",), abstained=True)
    assert gold_shown_by_hop(asked, nothing, gold) == ([0.0], {0: None})
    assert gold_shown_by_hop(asked, plain_answer("Boats float."), gold) == (None, {})
    assert gold_shown_by_hop(asked, grounded("Boats float.", [1]), {0: []}) == ([], {})
    assert "gold_shown" not in answer_measures(grade(gold=["held"], hops_shown=[]))


def test_retrieval_is_told_apart_from_what_the_model_made_of_it():
    """Two of three gold claims were shown, of which the answer holds one in full and one not; the
    third it knew.
    """
    shown = {"hops_shown": [1 / 3, 2 / 3], "first_hop": {0: 1, 1: 2, 2: None}}
    found = answer_measures(grade(["correct"], ["held", "not", "held"], **shown))
    assert (found["gold_shown_first_hop"], found["gold_shown"]) == (1 / 3, 2 / 3)
    assert found["coverage_of_shown"] == 0.5
    assert found["coverage"] == 2 / 3


def test_where_the_second_hop_helped():
    """Three took one hop, two of them a second, which first showed two gold claims: one held in
    part, one not.
    """
    two = {"hops_shown": [0.5, 1.0], "first_hop": {0: 1, 1: 2}}
    told = [
        grade(["correct"], ["held", "partly"], number=1, **two),
        grade(["correct"], ["held", "not"], number=2, **two),
        grade(["correct"], ["held"], number=3, hops_shown=[0.0], first_hop={0: None}),
        grade(["correct"], ["held"], number=4),
    ]
    first, second = hop_gains(told)
    of_writer = {"judge": "judge", "system": "direct"}
    counts = {"hop": 1, "questions": 3, "known": 5, "shown": 2, "helped": ["q1", "q2"]}
    assert first == of_writer | counts | {"held": pytest.approx(2.0)}
    counts = {"hop": 2, "questions": 2, "known": 4, "shown": 2, "helped": ["q1"]}
    assert second == of_writer | counts | {"held": pytest.approx(0.5)}


def test_the_latest_cut_off_is_by_day_and_a_month_counts_to_its_end():
    assert latest_cutoff(["2023-10", "2023-12", "2023-12-15"]) == "2023-12"
    assert latest_cutoff([]) == ""


@cases(CASES, "ages", ["paper", "cutoff", "age"])
def test_a_paper_is_old_for_a_model_that_can_have_read_it(paper, cutoff, age):
    assert age_of(paper, cutoff) == age


@cases(CASES, "no_cutoffs")
def test_a_cut_off_that_is_no_day_is_told(case):
    with pytest.raises(SettingError, match="knowledge cut-off: write it as YYYY-MM"):
        age_of("2024-03", case)
