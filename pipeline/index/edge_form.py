"""Qdrant Edge's own form of a layout, of points, of conditions and of requests. Only builds them; opens nothing.

API: `qdrant_edge/__init__.pyi` of qdrant-edge-py 0.9.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pipeline.index.batch import PointBatch
from pipeline.index.layout import COLBERT, DENSE, LEXICAL, SPARSE, Layout
from pipeline.index.passage_index import (
    HNSW_EF,
    OVERSAMPLING,
    Condition,
    Query,
    Request,
)

if TYPE_CHECKING:
    from pipeline.embedding.sparse import SparseVector

# Numbers beyond this share are cut off before the rest is spread over 256 steps: a few outliers would waste most.
_QUANTILE = 0.99


def edge_config(layout: Layout, *, on_disk: bool) -> Any:
    """The configuration of a collection; float16 loses nothing, since the tables hold no more."""
    import qdrant_edge as edge

    common: dict[str, Any] = {
        "size": layout.dimensions,
        "distance": edge.Distance.Cosine,
        "datatype": edge.VectorStorageDatatype.Float16,
    }
    memory = edge.Memory.Cold if on_disk else edge.Memory.Cached
    vectors: dict[str, Any] = {
        DENSE: edge.EdgeVectorParams(**common, memory=memory, quantization_config=_quantization(layout))
    }
    if layout.colbert:
        # It only ranks candidates again: a graph over its hundreds of vectors a passage would serve nobody (m = 0),
        # and in memory it would be a hundred times the rest.
        graph = edge.HnswIndexConfig(m=0, ef_construct=100, full_scan_threshold=10_000)
        many = edge.MultiVectorConfig(edge.MultiVectorComparator.MaxSim)
        vectors[COLBERT] = edge.EdgeVectorParams(
            **common, memory=edge.Memory.Cold, multivector_config=many, hnsw_config=graph
        )
    sparse: dict[str, Any] = {LEXICAL: edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf)}
    if layout.sparse:
        sparse[SPARSE] = edge.EdgeSparseVectorParams()
    return edge.EdgeConfig(vectors=vectors, sparse_vectors=sparse, wal_enabled=True)


def _quantization(layout: Layout) -> Any:
    import qdrant_edge as edge

    if layout.quantization == "int8":
        return edge.ScalarQuantizationConfig(edge.ScalarType.Int8, quantile=_QUANTILE, memory=edge.Memory.Pinned)
    if layout.quantization == "binary":
        scalar = edge.BinaryQuantizationQueryEncoding.Scalar8Bits
        return edge.BinaryQuantizationConfig(memory=edge.Memory.Pinned, query_encoding=scalar)
    return None


def edge_points(points: PointBatch) -> list[Any]:
    """Points for an upsert.

    Edge reads numbers one by one through Python, from whatever can be iterated: a row of 1,024 took it 13 µs as a
    memory view, 18 µs as a list made for it, 28 µs as an array.
    """
    import numpy as np
    import qdrant_edge as edge

    made, dense = [], np.ascontiguousarray(points.dense, np.float32)
    for number, identifier in enumerate(points.ids):
        vectors: dict[str, Any] = {DENSE: dense[number].data, LEXICAL: _terms(points.lexical.row(number))}
        if points.sparse is not None:
            vectors[SPARSE] = _terms(points.sparse.row(number))
        tokens = points.tokens(number)
        if tokens is not None:
            vectors[COLBERT] = [_view(token) for token in tokens]
        made.append(edge.Point(identifier, vectors, dict(points.payloads[number])))
    return made


def _terms(vector: SparseVector) -> Any:
    import qdrant_edge as edge

    return edge.SparseVector(_view(vector.ids), _view(vector.weights))


def _view(numbers: Any) -> Any:
    """A memory view, which is typed as no list, and is read like one."""
    return numbers.data


def edge_filter(conditions: Sequence[Condition], passages: Sequence[str] | None = None) -> Any:
    """A filter by conditions that must all hold (a negated one must not), and by ids."""
    import qdrant_edge as edge

    by_id = [] if passages is None else [edge.HasIdCondition(set(passages))]
    return edge.Filter(
        must=[*by_id, *(_condition(condition) for condition in conditions if not condition.negated)],
        must_not=[_condition(condition) for condition in conditions if condition.negated],
    )


def _condition(condition: Condition) -> Any:
    import qdrant_edge as edge

    if condition.values:
        return edge.FieldCondition(condition.field, match=edge.MatchAny(list(condition.values)))
    return edge.FieldCondition(condition.field, range=edge.RangeFloat(gte=condition.low, lte=condition.high))


def edge_query(query: Query, request: Request, layout: Layout) -> Any:
    """One search."""
    import qdrant_edge as edge

    nearest: Any
    if request.by == COLBERT:
        nearest = [] if query.colbert is None else [_view(token) for token in query.colbert]
    else:
        nearest = _view(query.dense) if request.by == DENSE else _terms(query.terms(request.by))
    return edge.QueryRequest(
        limit=request.limit,
        query=edge.Query.Nearest(nearest, using=request.by),
        filter=edge_filter(request.where, request.passages),
        params=_params(request, layout),
        with_payload=list(request.fields) or False,
    )


def _params(request: Request, layout: Layout) -> Any:
    """How the graph of dense vectors is walked, and what is scored again with whole vectors.

    Of lexical vectors, the documents whose frequencies count: those of the months searched. Over all months, 9 of 25
    questions on the first of three had other passages among the first three once the later ones were loaded.
    """
    import qdrant_edge as edge

    if request.by == LEXICAL:
        months = request.months
        return edge.SearchParams(idf=edge.IdfParams(corpus=edge_filter(months))) if months else None
    if request.by != DENSE:
        return None
    if request.exact or request.passages is not None:
        return edge.SearchParams(exact=True, quantization=edge.QuantizationSearchParams(ignore=True))
    if layout.quantization == "none":
        return edge.SearchParams(hnsw_ef=HNSW_EF[layout.quantization])
    rescoring = edge.QuantizationSearchParams(rescore=True, oversampling=OVERSAMPLING[layout.quantization])
    return edge.SearchParams(hnsw_ef=HNSW_EF[layout.quantization], quantization=rescoring)
