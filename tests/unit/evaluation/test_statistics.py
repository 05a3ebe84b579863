"""Intervals, differences and agreement by hand and by theory."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.evaluation.g_score.measures import votes_by_task
from pipeline.evaluation.statistics import (
    MOST_DRAWN,
    Agreement,
    Estimate,
    agreement,
    clear_winner,
    estimate,
    mean_ends,
    paired_difference,
    rank_correlation,
)
from tests.unit.evaluation.made_up import judgement


def ends_of_mean(values, papers):
    low, high = mean_ends(values, [str(paper) for paper in papers])
    assert low is not None
    assert high is not None
    return low, high


@given(
    st.lists(
        st.tuples(st.integers(0, 6), st.floats(0, 1, width=32)), min_size=2, max_size=30
    ).filter(lambda pairs: len({paper for paper, _ in pairs}) > 1)
)
def test_an_interval_holds_the_mean(pairs):
    values = np.array([value for _, value in pairs])
    low, high = ends_of_mean(values, (paper for paper, _ in pairs))
    assert -1e-9 <= low <= values.mean() <= high <= 1 + 1e-9


def test_one_paper_or_one_task_gives_no_interval():
    assert mean_ends(np.linspace(0, 1, 9), ["a"] * 9) == (None, None)
    assert estimate({"a": [1.0, 5.0, 3.0]}) == Estimate(3.0, count=1)
    assert estimate({"a": [1.0], "b": []}) == Estimate(1.0, count=1)
    assert estimate({}) == Estimate(None)


def test_sentences_of_one_paper_count_as_dependent():
    """Ten papers of ten sentences each, alike within a paper: as wide as ten sentences, not as a
    hundred.
    """
    values = np.repeat([0.0, 1.0], 50)
    low, high = ends_of_mean(values, (number // 10 for number in range(100)))
    low_apart, high_apart = ends_of_mean(values, range(100))
    assert high - low > 2 * (high_apart - low_apart)


def test_an_interval_is_about_as_wide_as_theory_says():
    values = np.random.default_rng(3).normal(3.0, 0.5, 200)
    theory = 2 * 1.96 * values.std() / math.sqrt(200)
    low, high = ends_of_mean(values, range(200))
    assert high - low == pytest.approx(theory, rel=0.1)
    found = estimate({f"t{number}": [value] for number, value in enumerate(values)})
    assert found.value == pytest.approx(values.mean())
    assert found.low is not None
    assert found.high is not None
    assert found.high - found.low == pytest.approx(theory, rel=0.05)


def test_an_interval_over_very_many_tasks_is_that_of_draws():
    many = {f"{number:05}": [float(number % 7)] for number in range(MOST_DRAWN)}
    drawn, normal = estimate(many), estimate({**many, "more": [3.0]})
    assert normal.value == pytest.approx(drawn.value, abs=0.01)
    assert normal.low == pytest.approx(drawn.low, abs=0.01)
    assert normal.high == pytest.approx(drawn.high, abs=0.01)


def test_the_same_papers_are_drawn_every_time():
    values = np.random.default_rng(2).random(30)
    papers = [number % 7 for number in range(30)]
    low, high = ends_of_mean(values, papers)
    assert ends_of_mean(values, papers) == (low, high)
    assert ends_of_mean(1 - values, papers) == pytest.approx((1 - high, 1 - low))


def test_repeats_of_a_task_are_one_value_and_a_task_weighs_the_same_with_many():
    once = estimate({"a": [1.0], "b": [3.0]})
    often = estimate({"b": [3.0], "a": [0.0, 1.0, 2.0, 1.0]})
    assert once == often == Estimate(2.0, 1.0, 3.0, 2)


def test_a_difference_is_paired_by_task():
    """Tasks differ by far more than systems do; the second is 0.5 lower in each of the tasks that
    both wrote.
    """
    first = {f"t{number}": [float(number)] for number in range(10)}
    second = {f"t{number}": [number - 0.5] for number in range(2, 14)}
    assert paired_difference(first, second) == Estimate(0.5, 0.5, 0.5, 8)
    assert paired_difference(second, first) == Estimate(-0.5, -0.5, -0.5, 8)
    assert paired_difference(first, {"t1": [1.0]}) is None


@pytest.mark.parametrize(
    ("words", "scores", "expected"),
    [
        ([1, 2, 3, 4, 5], [2, 1, 4, 3, 5], 1 - 6 * 4 / (5 * 24)),  # 1 - 6 Σd² / n(n² - 1)
        ([100, 200, 300, 150], [1.0, 3.0, 4.0, 2.0], 1.0),
        ([], [], None),
        ([1, 2], [1, 2], None),
        ([5, 5, 5], [1, 2, 3], None),
        ([1, 2, 3], [4, 4, 4], None),
    ],
)
def test_rank_correlation_is_that_of_the_definition_and_none_of_too_few_or_of_a_constant(
    words, scores, expected
):
    assert rank_correlation(words, scores) == pytest.approx(expected)


def test_agreement_counts_the_pairs_that_neither_scores_alike():
    first = {
        ("a", "x"): 1.0,
        ("a", "y"): 2.0,
        ("a", "z"): 3.0,
        ("b", "x"): 4.0,
        ("b", "y"): 4.0,
        ("c", "x"): 1.0,
    }
    second = {
        ("a", "x"): 2.0,
        ("a", "y"): 1.0,
        ("a", "z"): 5.0,
        ("b", "x"): 4.0,
        ("b", "y"): 5.0,
        ("d", "x"): 1.0,
    }
    found = agreement(first, second)
    spearman = rank_correlation([1, 2, 3, 4, 4], [2, 1, 5, 4, 5])
    assert found is not None
    assert (found.tasks, found.sections, found.compared, found.spearman) == (2, 5, 3, spearman)
    assert found.same_order == pytest.approx(2 / 3)
    assert found.mean_difference == pytest.approx(0.6)
    assert agreement(first, {("d", "x"): 1.0}) is None
    assert agreement({("a", "x"): 1.0}, {("a", "x"): 2.0}) == Agreement(1, 1, None, None, 0, 1.0)


@pytest.mark.parametrize(
    ("votes", "winner"), [("xyx", "x"), ("x", "x"), ("xy", None), ("xxyyz", None), ("", None)]
)
def test_the_winner_has_more_votes_than_any_other(votes, winner):
    assert clear_winner(votes) == winner


def test_votes_are_by_task_in_the_order_of_repeats():
    rows = [
        judgement("a", {}, "x", repeat=1),
        judgement("a", {}, "y"),
        judgement("b", {}, "x", judge="two"),
        judgement("c", {}),
    ]
    assert votes_by_task(rows, "two") == {"b": ["x"]}
    one = next(row["judge"] for row in rows)
    assert votes_by_task(rows, one) == {"a": ["y", "x"]}
