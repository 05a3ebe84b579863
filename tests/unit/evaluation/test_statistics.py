"""Intervals, differences and agreement by hand, by theory, by published worked examples and by
another implementation.
"""

import math
from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.evaluation.statistics import (
    MOST_DRAWN,
    Agreement,
    Estimate,
    agreement,
    alpha,
    estimate,
    mean_ends,
    paired_difference,
    rank_correlation,
    winners,
)
from tests.cases import cases

pytestmark = pytest.mark.slow

CASES = "unit/evaluation/cases.toml"


@given(
    st.lists(
        st.tuples(st.integers(0, 6), st.floats(0, 1, width=32)), min_size=2, max_size=30
    ).filter(lambda pairs: len({paper for paper, _ in pairs}) > 1)
)
def test_an_interval_holds_the_mean(pairs):
    papers, values = zip(*pairs, strict=True)
    low, high = mean_ends(np.array(values), list(map(str, papers)))
    assert -1e-9 <= low <= np.mean(values) <= high <= 1 + 1e-9


@cases(CASES, "estimates", ["tasks", "values"])
def test_an_estimate_is_over_tasks_whatever_number_of_values_each_has(tasks, values):
    found = estimate({chr(97 + place): of_task for place, of_task in enumerate(tasks)})
    assert ["" if each is None else each for each in astuple(found)] == values


def width(values, papers):
    low, high = mean_ends(values, list(map(str, papers)))
    return high - low


def test_sentences_of_one_paper_count_as_dependent():
    """Ten papers of ten sentences each, alike within a paper: as wide as ten sentences, not as a
    hundred.
    """
    values = np.repeat([0.0, 1.0], 50)
    of_ten = (number // 10 for number in range(100))
    assert width(values, of_ten) > 2 * width(values, range(100))


def test_an_interval_is_about_as_wide_as_theory_says():
    values = np.random.default_rng(3).normal(3.0, 0.5, 200)
    theory = 2 * 1.96 * values.std() / math.sqrt(200)
    assert width(values, range(200)) == pytest.approx(theory, rel=0.1)
    found = estimate({f"t{number}": [value] for number, value in enumerate(values)})
    assert found.value == pytest.approx(values.mean())
    assert found.high - found.low == pytest.approx(theory, rel=0.05)


def test_an_interval_over_very_many_tasks_is_that_of_draws():
    many = {f"{number:05}": [float(number % 7)] for number in range(MOST_DRAWN)}
    drawn, normal = estimate(many), estimate({**many, "more": [3.0]})
    for name in ("value", "low", "high"):
        assert getattr(normal, name) == pytest.approx(getattr(drawn, name), abs=0.01)


def test_a_difference_is_paired_by_task():
    """Tasks differ by far more than systems do; the second is 0.5 lower in each of the tasks that
    both wrote.
    """
    first = {f"t{number}": [float(number)] for number in range(10)}
    second = {f"t{number}": [number - 0.5] for number in range(2, 14)}
    assert paired_difference(first, second) == Estimate(0.5, 0.5, 0.5, 8)
    assert paired_difference(second, first) == Estimate(-0.5, -0.5, -0.5, 8)
    assert paired_difference(first, {"t1": [1.0]}) is None


# Of the first: 1 - 6 Σd² / n(n² - 1).
@cases(CASES, "rank_correlation", ["words", "scores", "expected"])
def test_rank_correlation_is_that_of_the_definition_and_none_of_too_few_or_of_a_constant(
    words, scores, expected
):
    assert rank_correlation(words, scores) == pytest.approx(expected)


def sections(**tasks):
    """(Task, section) → its mark, twice."""
    return {
        (task, str(place)): [mark, mark]
        for task, marks in tasks.items()
        for place, mark in enumerate(marks)
    }


def test_agreement_counts_the_pairs_that_neither_scores_alike():
    first = sections(a=[1.0, 2.0, 3.0], b=[4.0, 4.0], c=[1.0])
    second = sections(a=[2.0, 1.0, 5.0], b=[4.0, 5.0], d=[1.0])
    spearman = rank_correlation([1, 2, 3, 4, 4], [2, 1, 5, 4, 5])
    found = agreement(first, second)
    assert (found.sections, found.spearman) == (5, spearman)
    assert (found.same_order, found.mean_difference) == pytest.approx((2 / 3, 0.6))
    assert agreement(first, sections(d=[1.0])) is None
    one, other = sections(a=[1.0]), sections(a=[2.0])
    assert agreement(one, other) == Agreement(1, None, None, 1.0)


@cases(CASES, "winners", ["votes", "winner"])
def test_the_winner_has_more_votes_than_any_other(votes, winner):
    assert winners({"votes": votes}) == ({} if winner is None else {"votes": winner})


# Krippendorff (2011), Computing Krippendorff's Alpha-Reliability, section E: four observers, twelve
# units; 0: no mark.
OBSERVERS = ("123321412000", "123322412503", "033323422510", "123324412510")
UNITS = [[mark for mark in map(int, unit) if mark] for unit in zip(*OBSERVERS, strict=True)]


def alpha_of(units, level="ordinal", tasks=None):
    tasks = tasks or [str(place) for place in range(len(units))]
    named = zip(tasks, units, strict=True)
    return alpha(
        (((task, str(place)), value) for place, (task, unit) in enumerate(named) for value in unit),
        level,
    )


@pytest.mark.parametrize(("level", "published"), [("nominal", 0.743), ("ordinal", 0.815)])
def test_alpha_is_that_of_krippendorffs_own_example(level, published):
    assert alpha_of(UNITS, level).value == pytest.approx(published, abs=0.0005)


@cases(CASES, "alphas", ["units", "level", "value", "ends"])
def test_alpha_of_full_agreement_is_1_of_contradiction_below_0_and_of_one_value_absent(
    units, level, value, ends
):
    found = alpha_of(units, level)
    assert found.value == (None if value == "" else pytest.approx(value))
    assert [found.low, found.high] == (ends or [found.low, found.high])


def test_the_interval_of_alpha_is_around_it_and_the_same_every_time_and_of_one_task_there_is_none():
    tasks = [f"task {place // 3}" for place in range(len(UNITS))]
    found = alpha_of(UNITS, tasks=tasks)
    assert found.value == pytest.approx(0.815, abs=0.0005)
    assert found.count == 11
    assert found.low < 0.815 < found.high
    assert alpha_of(UNITS, tasks=tasks) == found
    alone = alpha_of(UNITS, tasks=["the only task"] * len(UNITS))
    assert (alone.value, alone.low, alone.high) == (found.value, None, None)
