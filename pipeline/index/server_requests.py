"""What citeloom asks a Qdrant server for, in qdrant-client's words: a new collection, filters, searches.

Needs Qdrant 1.16 or newer (reciprocal rank fusion with a constant of one's own, metadata of a collection).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from pipeline.index.layout import Layout, Quantization
from pipeline.index.passage_index import (
    COLBERT,
    DENSE,
    HNSW_EF,
    INTEGERS,
    KEYWORDS,
    OVERSAMPLING,
    RRF_K,
    SPARSE,
    Condition,
    Request,
    Restriction,
)

if TYPE_CHECKING:
    from qdrant_client import models

    from pipeline.embedding.embedder import Vectors

# Segments that a shard is filled in; `settle` lets the server merge them. Server 1.16.3 writes the whole list of a
# term's points anew for each point that has the term: the last of 30,000 points cost it 466 microseconds each in its
# own 2 segments, 155 in 16 and 100 in 64, and of 100,000 points 1,291 and 194. To make 64 empty ones takes 2 s, once.
LOADING_SEGMENTS = 64

# Under which a collection's metadata says whose it is.
_MARK = "citeloom"

# Fused scores tie often, in pairs: rank 3 of one list alone counts as much as rank 3 of the other. A few more are asked
# for than are wanted, so that the order within a tie, and who just makes the limit, is ours; each costs 0.05 ms.
_TIES = 8


@dataclass(frozen=True, slots=True)
class Storage:
    """How a new collection lies on a server.

    on_disk: whether whole vectors stay on disk, and compressed ones alone in memory. shards: parts of the collection.
    replicas: copies of each, on other nodes of a cluster. segments: parts of a shard while it is filled.
    """

    on_disk: bool = False
    shards: int = 1
    replicas: int = 1
    segments: int = field(default_factory=lambda: LOADING_SEGMENTS)


def new_collection(layout: Layout, alias: str, storage: Storage) -> dict[str, Any]:
    """The arguments of `create_collection`."""
    from qdrant_client import models

    vectors = {DENSE: _dense(layout, storage)}
    if layout.colbert:
        vectors[COLBERT] = _colbert(layout)
    sparse = models.SparseVectorParams(
        modifier=models.Modifier.IDF if layout.sparse_idf else None,
        index=models.SparseIndexParams(on_disk=storage.on_disk),
    )
    return {
        "vectors_config": vectors,
        "sparse_vectors_config": {SPARSE: sparse},
        "optimizers_config": models.OptimizersConfigDiff(default_segment_number=storage.segments),
        "shard_number": storage.shards,
        "replication_factor": storage.replicas,
        "metadata": {_MARK: {"alias": alias, "layout": asdict(layout)}},
    }


def _dense(layout: Layout, storage: Storage) -> models.VectorParams:
    from qdrant_client import models

    return models.VectorParams(
        size=layout.dimensions,
        distance=models.Distance.COSINE,
        datatype=models.Datatype.FLOAT16,
        on_disk=storage.on_disk,
        quantization_config=_quantization(layout.quantization),
    )


def _colbert(layout: Layout) -> models.VectorParams:
    """No graph: these vectors only rank again what others found."""
    from qdrant_client import models

    return models.VectorParams(
        size=layout.dimensions,
        distance=models.Distance.COSINE,
        datatype=models.Datatype.FLOAT16,
        on_disk=True,
        multivector_config=models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM),
        hnsw_config=models.HnswConfigDiff(m=0),
    )


def _quantization(kind: Quantization) -> Any:
    from qdrant_client import models

    if kind == "int8":
        int8 = models.ScalarQuantizationConfig(type=models.ScalarType.INT8, quantile=0.99, always_ram=True)
        return models.ScalarQuantization(scalar=int8)
    if kind == "binary":
        # One bit a number for the points and eight for the query: as small, and more often right.
        scalar = models.BinaryQuantizationQueryEncoding.SCALAR8BITS
        return models.BinaryQuantization(binary=models.BinaryQuantizationConfig(always_ram=True, query_encoding=scalar))
    return None


def payload_indexes() -> dict[str, models.PayloadSchemaType]:
    """Field to kind of every payload index."""
    from qdrant_client import models

    keywords = dict.fromkeys(KEYWORDS, models.PayloadSchemaType.KEYWORD)
    return keywords | dict.fromkeys(INTEGERS, models.PayloadSchemaType.INTEGER)


def mark_of(metadata: Mapping[str, Any] | None) -> tuple[str, Layout] | None:
    """Alias and layout by the metadata of a collection that citeloom made; None for any other."""
    try:
        mark = (metadata or {})[_MARK]
        return mark["alias"], Layout.from_mapping(mark["layout"])
    except (KeyError, TypeError):
        return None


def filter_of(conditions: Sequence[Condition], any_of: Sequence[Condition] = ()) -> models.Filter | None:
    """The points that all conditions hold for, and one of `any_of`; None where there are no conditions."""
    from qdrant_client import models

    if not conditions and not any_of:
        return None
    return models.Filter(
        must=[_condition(each) for each in conditions if not each.negated],
        must_not=[_condition(each) for each in conditions if each.negated],
        should=[_condition(each) for each in any_of] or None,
    )


def _condition(condition: Condition) -> models.FieldCondition:
    from qdrant_client import models

    if condition.values:
        return models.FieldCondition(key=condition.field, match=models.MatchAny(any=list(condition.values)))
    return models.FieldCondition(key=condition.field, range=models.Range(gte=condition.low, lte=condition.high))


class Searches:
    """Queries of one request, as a server is asked them."""

    def __init__(self, request: Request, layout: Layout) -> None:
        self._request = request
        self._where = _restricted_to(request.restriction)
        self._params = _params(request, layout.quantization)
        self._sparse_params = _sparse_params(request, layout)

    def ask(self, vectors: Vectors) -> models.QueryRequest:
        """The search for one query, whose answer holds what `best_first` picks from."""
        from qdrant_client import models

        wanted = self._request.limit + self._request.offset + _TIES
        if self._request.colbert:
            tokens = [] if vectors.colbert is None else vectors.colbert.tolist()
            candidates = self._first_stage(vectors, self._request.candidates)
            return models.QueryRequest(
                prefetch=candidates, query=tokens, using=COLBERT, limit=wanted, with_payload=True
            )
        stage = self._first_stage(vectors, wanted)
        return models.QueryRequest(
            prefetch=stage.prefetch,
            query=stage.query,
            using=stage.using,
            filter=stage.filter,
            params=stage.params,
            limit=wanted,
            with_payload=True,
        )

    def _first_stage(self, vectors: Vectors, limit: int) -> models.Prefetch:
        from qdrant_client import models

        if self._request.by == "dense":
            return self._by_dense(vectors, limit)
        if self._request.by == "sparse":
            return self._by_sparse(vectors, limit)
        most = self._request.candidates
        lists = [self._by_dense(vectors, most), self._by_sparse(vectors, most)]
        return models.Prefetch(prefetch=lists, query=models.RrfQuery(rrf=models.Rrf(k=RRF_K)), limit=limit)

    def _by_dense(self, vectors: Vectors, limit: int) -> models.Prefetch:
        from qdrant_client import models

        return models.Prefetch(
            query=vectors.dense.tolist(), using=DENSE, filter=self._where, params=self._params, limit=limit
        )

    def _by_sparse(self, vectors: Vectors, limit: int) -> models.Prefetch:
        from qdrant_client import models

        terms = models.SparseVector(indices=vectors.sparse_ids.tolist(), values=vectors.sparse_weights.tolist())
        return models.Prefetch(query=terms, using=SPARSE, filter=self._where, params=self._sparse_params, limit=limit)


def _restricted_to(restriction: Restriction) -> models.Filter | None:
    return filter_of(restriction.conditions(), restriction.any_of())


def _sparse_params(request: Request, layout: Layout) -> models.SearchParams | None:
    """Document frequencies of the months searched alone, as Edge counts them (`edge_form`)."""
    from qdrant_client import models

    months = filter_of(request.restriction.months()) if layout.sparse_idf else None
    return models.SearchParams(idf=models.IdfCorpusParams(corpus=months)) if months else None


def _params(request: Request, quantization: Quantization) -> models.SearchParams:
    from qdrant_client import models

    if request.exact:
        return models.SearchParams(exact=True, quantization=models.QuantizationSearchParams(ignore=True))
    scored_again = models.QuantizationSearchParams(rescore=True, oversampling=OVERSAMPLING[quantization])
    return models.SearchParams(
        hnsw_ef=HNSW_EF[quantization], quantization=None if quantization == "none" else scored_again
    )
