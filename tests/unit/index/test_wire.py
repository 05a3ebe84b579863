"""Points as a server reads them: what qdrant-client's own classes read back is what it would have sent."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.embedding.sparse import SparseRows
from pipeline.index.batch import PointBatch
from pipeline.index.wire import upsert_body, upsert_message
from tests.unit.index.building import make_points

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def _by_qdrant_client(points: PointBatch) -> Any:
    """The message that qdrant-client makes of the same points."""
    from qdrant_client import grpc, models
    from qdrant_client.conversions.conversion import RestToGrpc

    made = []
    for number, identifier in enumerate(points.ids):
        vector: dict[str, Any] = {"dense": points.dense[number].tolist()}
        for name, rows in (("lexical", points.lexical), ("sparse", points.sparse)):
            if rows is not None:
                terms = rows.row(number)
                vector[name] = models.SparseVector(indices=terms.ids.tolist(), values=terms.weights.tolist())
        tokens = points.tokens(number)
        if tokens is not None:
            vector["colbert"] = tokens.tolist()
        point = models.PointStruct(id=identifier, vector=vector, payload=dict(points.payloads[number]))
        made.append(RestToGrpc.convert_point_struct(point))
    return grpc.UpsertPoints(collection_name="c", wait=True, points=made)


def _read(message: bytes) -> Any:
    from qdrant_client import grpc

    return grpc.UpsertPoints.FromString(message)


def _cases() -> dict[str, PointBatch]:
    plain, random = make_points(range(40)), np.random.default_rng(3)
    ids = np.array([0, 127, 128, 16_383, 16_384, 2_097_151, 2_097_152, 268_435_455, 268_435_456, 2**32 - 1], np.uint32)
    bounds = np.array([0, 4, 4, 10], np.int64)
    widths = replace(make_points(range(3)), lexical=SparseRows(bounds, ids, np.ones(10, np.float32)))
    wide = replace(make_points(range(5)), dense=random.standard_normal((5, 1024)).astype(np.float32))
    return {
        "plain": plain,
        "no sparse vectors": make_points(range(5), sparse=False),
        "colbert": make_points(range(9), colbert=True),
        "none": make_points([]),
        "ids of every width, and a point without any": widths,
        "long vectors": wide,
        "every second column": replace(wide, dense=wide.dense[:, ::2]),
        "some of many": plain.take(np.array([3, 1, 30])),
        "a name that is not ASCII": make_points([1], title="Übergänge – 遷移 \U0001f600"),
    }


@pytest.mark.parametrize("case", _cases())
def test_a_message_is_the_one_that_qdrant_client_makes(case: str) -> None:
    points = _cases()[case]
    assert _read(upsert_message("c", points)) == _by_qdrant_client(points)


@given(st.lists(st.dictionaries(st.text(), JSON, max_size=4), min_size=1, max_size=3))
def test_any_payload_is_written_as_qdrant_client_writes_it(payloads: list[dict[str, Any]]) -> None:
    points = replace(make_points(range(len(payloads))), payloads=payloads)
    assert _read(upsert_message("c", points)) == _by_qdrant_client(points)


@pytest.mark.parametrize("case", _cases())
def test_a_body_says_what_the_columns_hold(case: str) -> None:
    points = _cases()[case]
    batch = json.loads(upsert_body(points))["batch"]
    assert (batch["ids"], batch["payloads"]) == (list(points.ids), list(points.payloads))
    np.testing.assert_array_equal(
        np.array(batch["vectors"]["dense"], np.float32).reshape(points.dense.shape), points.dense
    )
    for name, rows in (("lexical", points.lexical), ("sparse", points.sparse)):
        for number, terms in enumerate(batch["vectors"].get(name, ())):
            assert rows is not None
            vector = rows.row(number)
            told = terms["indices"], np.float32(terms["values"]).tolist()
            assert told == (vector.ids.tolist(), vector.weights.tolist())
    if points.colbert is not None:
        for number, tokens in enumerate(batch["vectors"]["colbert"]):
            np.testing.assert_array_equal(np.float32(tokens), points.tokens(number))
