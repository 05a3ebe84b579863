"""Points by columns: taking and splitting them, and what no engine is given."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pipeline.embedding.embedder import SparseRows
from pipeline.errors import PermanentFailure
from pipeline.index.batch import PointBatch, check_points
from tests.unit.index.building import LAYOUT, make_points, passage_id

WITH_COLBERT = replace(LAYOUT, colbert=True)
NAN, INFINITE = float("nan"), float("inf")


def _terms(rows: SparseRows, number: int) -> tuple[list[int], list[float]]:
    vector = rows.row(number)
    return vector.ids.tolist(), vector.weights.tolist()


def _rows(points: PointBatch) -> list[tuple[object, ...]]:
    """Every point's columns as values that compare."""
    return [
        (
            points.ids[number],
            points.dense[number].tolist(),
            _terms(points.lexical, number),
            None if points.sparse is None else _terms(points.sparse, number),
            None if (tokens := points.tokens(number)) is None else tokens.tolist(),
            points.payloads[number],
        )
        for number in range(len(points))
    ]


@pytest.mark.parametrize("colbert", [False, True])
def test_points_that_are_taken_keep_their_columns(colbert: bool) -> None:
    points = make_points(range(9), colbert=colbert)
    taken = points.take(np.array([7, 2, 3], np.int64))
    assert _rows(taken) == [_rows(points)[number] for number in (7, 2, 3)]
    check_points(taken, replace(LAYOUT, colbert=colbert))


@pytest.mark.parametrize("most", [1, 1_500, 4 << 20])
def test_parts_hold_every_point_once_and_in_order(most: int) -> None:
    points = make_points(range(9), colbert=True)
    parts = list(points.split(most))
    assert [row for part in parts for row in _rows(part)] == _rows(points)
    assert all(len(part) >= 1 for part in parts)
    for part in parts:
        check_points(part, WITH_COLBERT)


def test_no_points_are_no_parts_and_no_fault() -> None:
    assert list(make_points([]).split()) == []
    check_points(make_points([]), LAYOUT)


def _with_dense(value: float) -> PointBatch:
    points = make_points(range(5))
    points.dense[3, 4] = value
    return points


def _with_lexical(**columns: Any) -> PointBatch:
    points = make_points(range(3))
    return replace(points, lexical=replace(points.lexical, **columns))


def _with_token(value: float) -> PointBatch:
    points = make_points(range(4), colbert=True)
    assert points.colbert is not None
    points.colbert[5, 0] = value  # two a point
    return points


@pytest.mark.parametrize(
    ("points", "number", "message"),
    [
        *[(_with_dense(value), 3, "2024-03 --select embeddings") for value in (NAN, INFINITE, -INFINITE, 1e30)],
        (replace(make_points([6, 7]), dense=np.zeros((2, 16), np.float32)), 6, r"\(16,\) and not \(8,\)"),
        (_with_lexical(weights=np.array([1] * 7 + [NAN, 1], np.float32)), 2, "weight that is NaN"),
        (_with_lexical(weights=np.array([1] * 7 + [INFINITE, 1], np.float32)), 2, "weight that is NaN"),
        (_with_lexical(ids=np.array([1, 2, 3, 2, 2, 3, 1, 2, 3], np.uint32)), 1, "do not ascend"),
        (_with_lexical(offsets=np.array([0, 6, 3, 9], np.int64)), 1, "end before their start"),
        (_with_token(NAN), 2, "ColBERT vector with NaN"),
    ],
)
def test_a_vector_that_no_engine_can_take_is_refused_by_name(points: PointBatch, number: int, message: str) -> None:
    with pytest.raises(PermanentFailure, match=rf"{passage_id(number)}.*{message}"):
        check_points(points, replace(LAYOUT, colbert=points.colbert is not None))


def test_sparse_ids_need_not_ascend_from_one_point_to_the_next() -> None:
    points = make_points([9, 1])
    assert points.lexical.ids[3] < points.lexical.ids[2]
    check_points(points, LAYOUT)


@pytest.mark.parametrize("column", ["ids", "weights", "offsets"])
def test_columns_of_different_lengths_are_refused(column: str) -> None:
    short = _with_lexical(**{column: getattr(make_points(range(3)).lexical, column)[:-1]})
    with pytest.raises(PermanentFailure, match="lexical columns of different lengths"):
        check_points(short, LAYOUT)


def test_colbert_vectors_are_there_for_every_point_or_for_none() -> None:
    bare, full = make_points(range(3)), make_points(range(3), colbert=True)
    with pytest.raises(PermanentFailure, match="has no ColBERT vectors, and the collection requires them"):
        check_points(bare, WITH_COLBERT)
    with pytest.raises(PermanentFailure, match="has ColBERT vectors, and the collection has none"):
        check_points(full, LAYOUT)
    with pytest.raises(PermanentFailure, match=rf"{passage_id(1)} has no ColBERT vectors"):
        check_points(replace(full, colbert_offsets=np.array([0, 3, 3, 6], np.int64)), WITH_COLBERT)


def test_sparse_vectors_are_there_for_every_point_or_for_none() -> None:
    without = replace(LAYOUT, sparse=False)
    check_points(make_points([1], sparse=False), without)
    for points, layout in ((make_points([1]), without), (make_points([1], sparse=False), LAYOUT)):
        with pytest.raises(PermanentFailure, match="sparse vector, against the collection's layout"):
            check_points(points, layout)
