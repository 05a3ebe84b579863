"""Points by columns: taking and splitting them, and what no engine is given."""

from dataclasses import replace

import numpy as np
import pytest

from pipeline.errors import PermanentFailure
from pipeline.index.batch import check_points
from tests.unit.index.building import make_points, passage_id

NAN, INFINITE = float("nan"), float("inf")


def _terms(rows, number):
    vector = rows.row(number)
    return vector.ids.tolist(), vector.weights.tolist()


def _rows(points):
    """Every point's columns as values that compare."""
    return [
        (
            points.ids[number],
            points.dense[number].tolist(),
            _terms(points.lexical, number),
            None if points.sparse is None else _terms(points.sparse, number),
            points.payloads[number],
        )
        for number in range(len(points))
    ]


def test_points_that_are_taken_keep_their_columns():
    points = make_points(range(9))
    taken = points.take(np.array([7, 2, 3], np.int64))
    assert _rows(taken) == [_rows(points)[number] for number in (7, 2, 3)]
    check_points(taken)


@pytest.mark.parametrize("most", [1, 1_500, 4 << 20])
def test_parts_hold_every_point_once_and_in_order(most):
    points = make_points(range(9))
    parts = list(points.split(most))
    assert [row for part in parts for row in _rows(part)] == _rows(points)
    assert all(len(part) >= 1 for part in parts)
    for part in parts:
        check_points(part)


def test_the_authors_of_a_paper_count_in_the_size_of_a_request():
    points = make_points(range(4), authors=["ann lee"] * 100_000)
    assert [len(part) for part in points.split()] == [1, 1, 1, 1]


def test_no_points_are_no_parts_and_no_fault():
    assert list(make_points([]).split()) == []
    check_points(make_points([]))


def _with_dense(value):
    points = make_points(range(5))
    points.dense[3, 4] = value
    return points


def _with_lexical(**columns):
    points = make_points(range(3))
    return replace(points, lexical=replace(points.lexical, **columns))


@pytest.mark.parametrize(
    ("points", "number", "message"),
    [
        *[
            (_with_dense(value), 3, "2024-03 --select embeddings")
            for value in (NAN, INFINITE, -INFINITE, 1e30)
        ],
        (
            _with_lexical(weights=np.array([1] * 7 + [NAN, 1], np.float32)),
            2,
            "lexical vector with NaN",
        ),
        (
            _with_lexical(weights=np.array([1] * 7 + [INFINITE, 1], np.float32)),
            2,
            "lexical vector with NaN",
        ),
        (_with_lexical(weights=np.ones(8, np.float32)), 0, "without a weight for each id"),
    ],
)
def test_a_vector_that_no_engine_can_take_is_refused_by_name(points, number, message):
    with pytest.raises(PermanentFailure, match=rf"{passage_id(number)}.*{message}"):
        check_points(points)
