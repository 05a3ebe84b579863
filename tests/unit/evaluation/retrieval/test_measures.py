"""Metrics of rankings by hand."""

from __future__ import annotations

import math

import pytest

from pipeline.evaluation.retrieval.measures import METRICS, per_query


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
