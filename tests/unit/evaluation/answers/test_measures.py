"""Measures of answers and systems against numbers that were worked out by hand."""

import pytest

from pipeline.answering.answer import plain_answer
from pipeline.corpus.nouns import Answer
from pipeline.errors import SettingError
from pipeline.evaluation.answers.measures import (
    age_of,
    answer_measures,
    gold_shown_by_hop,
    hop_gains,
    latest_cutoff,
)
from tests.cases import cases
from tests.unit.evaluation.answers.graded import grade, grounded, question

CASES = "unit/evaluation/cases.toml"
GIVEN = ("claims", "gold", "outcome", "hops_shown", "first_hop")


@cases("unit/evaluation/answers/measures.toml")
def test_measures_are_those_worked_out_by_hand(case):
    given = {name: case.pop(name) for name in GIVEN if name in case}
    found = answer_measures(grade(**given))
    expected = case.get("measures", case)
    shown = found if "measures" in case else {name: found.get(name, "") for name in case}
    assert shown == pytest.approx(expected)


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


def test_where_the_second_hop_helped():
    """Three took one hop, two of them a second, which first showed two gold claims: one held in
    part, one not.
    """
    two = {"hops_shown": [0.5, 1.0], "first_hop": [1, 2]}
    grades = [
        grade(["correct"], ["held", "partly"], number=1, **two),
        grade(["correct"], ["held", "not"], number=2, **two),
        grade(["correct"], ["held"], number=3, hops_shown=[0.0], first_hop=[""]),
        grade(["correct"], ["held"], number=4),
    ]
    columns = ("hop", "questions", "known", "shown", "held", "helped")
    assert [tuple(gain[name] for name in columns) for gain in hop_gains(grades)] == [
        (1, 3, 5, 2, 2.0, ["q1", "q2"]),
        (2, 2, 4, 2, 0.5, ["q1"]),
    ]


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
