"""Fusion that gives the same scores whatever order an engine holds equal points in."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.index.passage_index import RRF_K, Found
from pipeline.index.steady import fuse


def ranking(*scores: float, names: str = "abcdefghijklmnopqrstuvwxyz") -> list[Found]:
    return [Found(name, score, {}) for name, score in zip(names, scores, strict=False)]


def scores_of(found: Sequence[Found]) -> dict[str, float]:
    return {each.passage_id: each.score for each in found}


def test_ranks_count_from_zero_and_add_up() -> None:
    found = scores_of(fuse([ranking(0.9, 0.5), ranking(7.0, 3.0, names="ba")], 50))
    assert found == pytest.approx({"a": 1 / RRF_K + 1 / (RRF_K + 1), "b": 1 / (RRF_K + 1) + 1 / RRF_K})


def test_equal_scores_share_the_first_of_their_ranks() -> None:
    found = scores_of(fuse([ranking(0.9, 0.5, 0.5, 0.1)], 50))
    assert found == pytest.approx({"a": 1 / RRF_K, "b": 1 / (RRF_K + 1), "c": 1 / (RRF_K + 1), "d": 1 / (RRF_K + 3)})


def test_a_tie_that_the_end_cuts_through_is_left_out() -> None:
    assert scores_of(fuse([ranking(0.9, 0.5, 0.5)], 3)).keys() == {"a"}
    assert scores_of(fuse([ranking(0.9, 0.5, 0.5)], 4)).keys() == {"a", "b", "c"}


@given(st.lists(st.sampled_from([0.1, 0.2, 0.3]), max_size=26), st.integers(1, 26), st.integers())
def test_the_order_within_ties_changes_nothing(scores: list[float], depth: int, seed: int) -> None:
    points = ranking(*scores)
    mixed = random.Random(seed).sample(points, len(points))

    def cut(held: list[Found]) -> list[Found]:  # as an engine does: by score, ties as they lie there
        return sorted(held, key=lambda point: -point.score)[:depth]

    assert scores_of(fuse([cut(points), cut(points)], depth)) == scores_of(fuse([cut(mixed), cut(mixed)], depth))
