"""Measures of answers and systems against numbers that were worked out by hand."""

import pytest

from pipeline.answering.answer import plain_answer
from pipeline.corpus.nouns import Answer
from pipeline.errors import SettingError
from pipeline.evaluation.answers.measures import (
    MEASURES,
    age_of,
    answer_measures,
    coverage,
    factual,
    gold_shown_by_hop,
    latest_cutoff,
)
from pipeline.evaluation.answers.results import (
    ALL,
    QuestionGroup,
    difference,
    hop_gains,
    results,
)
from tests.unit.evaluation.answers.graded import claim_row, gold_row, grade, grounded, question


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
    assert answer_measures(grade(["correct"], [None]))["factual"] == 1.0
    assert "coverage" not in answer_measures(grade(["correct"], [None]))
    assert "factual_checkable" not in answer_measures(grade(["not_checkable"]))
    assert not {name for name in MEASURES if name.startswith("factual")} & set(
        answer_measures(grade([None]))
    )
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


GRADES = [
    grade(["correct", "wrong"], ["held", "not"], number=1, date="2023-11"),
    grade(["correct"], ["held"], number=2, kind="author"),
    grade(gold=["not", "not"], number=3, outcome="abstained"),
    grade(gold=["not"], number=4, outcome="claims_nothing"),
    grade(gold=["partly"], number=5, outcome="unreadable"),
]


def test_a_mean_weighs_questions_alike_and_abstentions_count_for_coverage_alone():
    """Factual: (1/2 + 1) / 2 over two answers; coverage: (1/2 + 1 + 0 + 0 + 1/2) / 5 over five."""
    found = results(GRADES)[0]
    assert (found.judge, found.system, found.group, found.questions) == ("judge", "direct", ALL, 5)
    assert found.outcomes == {"abstained": 1, "answered": 2, "claims_nothing": 1, "unreadable": 1}
    assert (found.measures["factual"].value, found.measures["factual"].count) == (0.75, 2)
    assert (found.measures["coverage"].value, found.measures["coverage"].count) == (0.4, 5)
    assert found.measures["claims"].value == 1.5
    low, high = found.measures["coverage"].low, found.measures["coverage"].high
    assert low is not None
    assert high is not None
    assert 0.0 <= low < 0.4 < high <= 1.0
    assert "gold_shown" not in found.measures


def test_results_come_by_kind_and_by_age_where_there_are_any():
    found = {result.group: result for result in results(GRADES, "2023-12")}
    assert list(found) == [
        ALL,
        QuestionGroup("kind", "author"),
        QuestionGroup("kind", "summary"),
        QuestionGroup("age", "old"),
        QuestionGroup("age", "recent"),
    ]
    assert found[QuestionGroup("age", "old")].measures["factual"].value == 0.5
    assert found[QuestionGroup("age", "old")].measures["factual"].low is None
    assert found[QuestionGroup("age", "recent")].questions == 4
    assert QuestionGroup("age", "old") not in {result.group for result in results(GRADES)}


def test_judges_and_systems_are_never_put_together_and_no_answer_is_graded_twice():
    several = [
        {**grade, "judge": judge, "system": system}
        for grade in GRADES
        for judge in "ab"
        for system in "xy"
    ]
    assert [
        (result.judge, result.system) for result in results(several) if result.group == ALL
    ] == [
        ("a", "x"),
        ("a", "y"),
        ("b", "x"),
        ("b", "y"),
    ]
    assert results(several[::-1]) == results(several)
    with pytest.raises(ValueError, match="q1 twice"):
        results([GRADES[0], GRADES[0]])


def test_systems_are_compared_over_the_questions_that_both_have():
    """Of factual %: questions 1 and 2, where the other has 1 and 1: differences of -1/2 and 0."""
    others = [grade(["correct"], ["held"], number=number, system="other") for number in (1, 2, 3)]
    found = difference([*GRADES, *others], "judge", "direct", "other", "factual")
    assert found is not None
    assert found.value == -0.25
    assert difference([*GRADES, *others[:1]], "judge", "direct", "other", "factual") is None


def test_where_the_second_hop_helped():
    """Three took one hop, two of them a second, which first showed two gold claims: one held in
    part, one not.
    """
    told = [
        grade(
            ["correct"], ["held", "partly"], number=1, hops_shown=[0.5, 1.0], first_hop={0: 1, 1: 2}
        ),
        grade(
            ["correct"], ["held", "not"], number=2, hops_shown=[0.5, 1.0], first_hop={0: 1, 1: 2}
        ),
        grade(["correct"], ["held"], number=3, hops_shown=[0.0], first_hop={0: None}),
        grade(["correct"], ["held"], number=4),
    ]
    first, second = hop_gains(told)
    assert (first.hop, first.questions, first.known, first.shown, first.held) == (1, 3, 5, 2, 2.0)
    assert (second.hop, second.questions, second.known, second.shown, second.held) == (
        2,
        2,
        4,
        2,
        0.5,
    )
    assert second.helped == ("q1",)


def test_the_latest_cut_off_is_by_day_and_a_month_counts_to_its_end():
    assert latest_cutoff(["2023-10", "2023-12", "2023-12-15"]) == "2023-12"
    assert latest_cutoff([]) == ""


@pytest.mark.parametrize(
    ("paper", "cutoff", "age"),
    [
        ("2023-12-31", "2023-12", "old"),
        ("2024-01-01", "2023-12", "recent"),
        ("2023-12", "2023-12", "old"),
        ("2023-12", "2023-12-15", "recent"),
        ("2023-12-15", "2023-12-15", "old"),
        ("2024-02", "2024-02-29", "old"),
        ("2024-03", "", None),
    ],
)
def test_a_paper_is_old_for_a_model_that_can_have_read_it(paper, cutoff, age):
    assert age_of(paper, cutoff) == age


@pytest.mark.parametrize(
    "cutoff", ["December 2023", "2023-13", "2023-00", "2023", "2023-02-30", "0000-01"]
)
def test_a_cut_off_that_is_no_day_is_told(cutoff):
    with pytest.raises(SettingError, match="knowledge cut-off: write it as YYYY-MM"):
        age_of("2024-03", cutoff)
