"""Qdrant Edge's own form of a layout, of points, of restrictions and of requests. Only builds them; opens nothing.

API: `qdrant_edge/__init__.pyi` of qdrant-edge-py 0.9.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pipeline.index.batch import PointBatch
from pipeline.index.layout import Layout
from pipeline.index.passage_index import COLBERT, DENSE, HNSW_EF, OVERSAMPLING, RRF_K, SPARSE, Condition, Request

if TYPE_CHECKING:
    from pipeline.embedding.embedder import Vectors

# Numbers beyond this share are cut off before the rest is spread over 256 steps: a few outliers would waste most.
_QUANTILE = 0.99

# Fused scores tie often: rank 3 of one list alone counts as much as rank 3 of the other. More are asked for than are
# wanted, so that who just makes the limit is not left to the order in which Edge found them; one costs 8 µs.
_TIES = 50


def edge_config(layout: Layout, *, on_disk: bool) -> Any:
    """The configuration of a collection; float16 loses nothing, since the tables hold no more."""
    import qdrant_edge as edge

    common: dict[str, Any] = {
        "size": layout.dimensions,
        "distance": edge.Distance.Cosine,
        "datatype": edge.VectorStorageDatatype.Float16,
    }
    memory = edge.Memory.Cold if on_disk else edge.Memory.Cached
    vectors = {DENSE: edge.EdgeVectorParams(**common, memory=memory, quantization_config=_quantization(layout))}
    if layout.colbert:
        # It only ranks candidates again: a graph over its hundreds of vectors a passage would serve nobody (m = 0),
        # and in memory it would be a hundred times the rest.
        graph = edge.HnswIndexConfig(m=0, ef_construct=100, full_scan_threshold=10_000)
        many = edge.MultiVectorConfig(edge.MultiVectorComparator.MaxSim)
        vectors[COLBERT] = edge.EdgeVectorParams(
            **common, memory=edge.Memory.Cold, multivector_config=many, hnsw_config=graph
        )
    sparse = edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf if layout.sparse_idf else None)
    return edge.EdgeConfig(vectors=vectors, sparse_vectors={SPARSE: sparse}, wal_enabled=True)


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
        ids, weights = points.sparse(number)
        vectors: dict[str, Any] = {DENSE: dense[number].data, SPARSE: edge.SparseVector(_view(ids), _view(weights))}
        tokens = points.tokens(number)
        if tokens is not None:
            vectors[COLBERT] = [_view(token) for token in tokens]
        made.append(edge.Point(identifier, vectors, dict(points.payloads[number])))
    return made


def _view(numbers: Any) -> Any:
    """A memory view, which is typed as no list, and is read like one."""
    return numbers.data


def edge_filter(conditions: Iterable[Condition], any_of: Iterable[Condition] = ()) -> Any:
    """A filter by conditions that must all hold (a negated one must not), and by those of which one must."""
    import qdrant_edge as edge

    conditions = list(conditions)
    return edge.Filter(
        must=[_condition(each) for each in conditions if not each.negated],
        must_not=[_condition(each) for each in conditions if each.negated],
        should=[_condition(each) for each in any_of],
    )


def _condition(condition: Condition) -> Any:
    import qdrant_edge as edge

    if condition.values:
        return edge.FieldCondition(condition.field, match=edge.MatchAny(list(condition.values)))
    return edge.FieldCondition(condition.field, range=edge.RangeFloat(gte=condition.low, lte=condition.high))


def edge_query(query: Vectors, request: Request, layout: Layout) -> Any:
    """One query of a search, whose answer holds what `best_first` picks from."""
    import qdrant_edge as edge

    wanted = request.limit + request.offset + _TIES
    if request.colbert and query.colbert is not None:
        first = edge.Prefetch(**_ranking(query, request, layout, request.candidates))
        again = edge.Query.Nearest([_view(token) for token in query.colbert], using=COLBERT)
        return edge.QueryRequest(limit=wanted, query=again, prefetches=[first], with_payload=True)
    return edge.QueryRequest(**_ranking(query, request, layout, wanted), with_payload=True)


def _ranking(query: Vectors, request: Request, layout: Layout, limit: int) -> dict[str, Any]:
    """The arguments of the stage that ranks by dense, by sparse, or by both fused."""
    import qdrant_edge as edge

    where = edge_filter(request.restriction.conditions(), request.restriction.any_of())
    terms = edge.SparseVector(_view(query.sparse_ids), _view(query.sparse_weights))
    stages: Mapping[str, dict[str, Any]] = {
        "dense": {"query": edge.Query.Nearest(_view(query.dense), using=DENSE), "params": _params(request, layout)},
        "sparse": {"query": edge.Query.Nearest(terms, using=SPARSE), "params": _sparse_params(request, layout)},
    }
    if request.by != "fused":
        return {**stages[request.by], "limit": limit, "filter": where}
    prefetches = [edge.Prefetch(**stage, limit=request.candidates, filter=where) for stage in stages.values()]
    return {"query": edge.Fusion.Rrf(k=RRF_K), "prefetches": prefetches, "limit": limit}


def _sparse_params(request: Request, layout: Layout) -> Any:
    """Document frequencies of the months searched alone: over all of them, 9 of 25 questions on the first of three
    months had other passages among the first three once the later ones were loaded."""
    import qdrant_edge as edge

    months = request.restriction.months() if layout.sparse_idf else []
    return edge.SearchParams(idf=edge.IdfParams(corpus=edge_filter(months))) if months else None


def _params(request: Request, layout: Layout) -> Any:
    """How the dense search walks the graph, and what it scores again with whole vectors."""
    import qdrant_edge as edge

    if request.exact:
        return edge.SearchParams(exact=True, quantization=edge.QuantizationSearchParams(ignore=True))
    if layout.quantization == "none":
        return edge.SearchParams(hnsw_ef=HNSW_EF[layout.quantization])
    rescoring = edge.QuantizationSearchParams(rescore=True, oversampling=OVERSAMPLING[layout.quantization])
    return edge.SearchParams(hnsw_ef=HNSW_EF[layout.quantization], quantization=rescoring)
