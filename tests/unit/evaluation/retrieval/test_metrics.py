"""Metrics of rankings by hand, and what their intervals promise. Not here: rankings (`test_rankings`)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.evaluation.retrieval.metrics import METRICS, Draws, per_query


def test_the_metrics_are_those_of_their_definitions() -> None:
    found = per_query([[5, 1, 9], [4], []], [[1, 7], [4], [2]])
    assert {name: values.tolist() for name, values in found.items()} == {
        "R@1": [0.0, 1.0, 0.0],
        "R@5": [0.5, 1.0, 0.0],
        "R@10": [0.5, 1.0, 0.0],
        "R@50": [0.5, 1.0, 0.0],
        "RR@50": [0.5, 1.0, 0.0],
        "nDCG@10": [pytest.approx((1 / math.log2(3)) / (1 + 1 / math.log2(3))), 1.0, 0.0],
    }
    assert tuple(found) == METRICS


def test_a_paper_counts_up_to_the_rank_that_the_metric_names() -> None:
    found = per_query([list(range(50))] * 3, [[4], [5], [49]])
    assert found["R@5"].tolist() == [1.0, 0.0, 0.0]
    assert found["R@50"].tolist() == [1.0, 1.0, 1.0]
    assert found["RR@50"].tolist() == pytest.approx([1 / 5, 1 / 6, 1 / 50])


def test_nothing_found_at_all_is_0_everywhere() -> None:
    assert all(values.tolist() == [0.0] for values in per_query([[]], [[1]]).values())


@given(
    st.lists(
        st.tuples(st.integers(0, 6), st.floats(0, 1, width=32)),
        min_size=2,
        max_size=30,
    ).filter(lambda pairs: len({paper for paper, _ in pairs}) > 1)
)
def test_an_interval_holds_the_mean(pairs: list[tuple[int, float]]) -> None:
    values = np.array([value for _, value in pairs])
    low, high = Draws([str(paper) for paper, _ in pairs]).interval(values)
    assert low is not None
    assert high is not None
    assert low <= values.mean() <= high
    assert -1e-9 <= low <= high <= 1 + 1e-9


def test_one_paper_that_asks_everything_gives_no_interval() -> None:
    assert Draws(["a"] * 9).interval(np.linspace(0, 1, 9)) == (None, None)


def test_sentences_of_one_paper_count_as_dependent() -> None:
    """Ten papers of ten sentences each, alike within a paper: as wide as ten sentences, not as a hundred."""
    values = np.repeat([0.0, 1.0], 50)
    together = Draws([str(number // 10) for number in range(100)]).interval(values)
    apart = Draws([str(number) for number in range(100)]).interval(values)
    assert together[0] is not None
    assert apart[0] is not None
    assert (together[1] - together[0]) > 2 * (apart[1] - apart[0])


def test_an_interval_is_about_as_wide_as_theory_says() -> None:
    values = np.random.default_rng(1).random(400)
    low, high = Draws([str(number) for number in range(400)]).interval(values)
    assert low is not None
    assert high is not None
    assert high - low == pytest.approx(2 * 1.96 * values.std() / 20, rel=0.1)


def test_the_same_papers_are_drawn_every_time() -> None:
    values = np.random.default_rng(2).random(30)
    papers = [str(number % 7) for number in range(30)]
    assert Draws(papers).interval(values) == Draws(papers).interval(values)
    low, high = Draws(papers).interval(values)
    assert Draws(papers).interval(1 - values) == pytest.approx((1 - (high or 0), 1 - (low or 0)))
