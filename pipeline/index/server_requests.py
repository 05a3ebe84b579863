"""Requests to a Qdrant server as qdrant-client's models: a new collection, points, filters,
searches.

They need Qdrant 1.16 or newer (a constant for reciprocal rank fusion, metadata of a collection).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from pipeline.index.passage_index import (
    DENSE,
    HNSW_EF,
    INTEGERS,
    KEYWORDS,
    LEXICAL,
    SPARSE,
    Condition,
    Layout,
    Quantization,
    QueryVectors,
    Request,
)

if TYPE_CHECKING:
    from qdrant_client import grpc, models

    from pipeline.index.batch import PointBatch

# Segments per shard during a load; `build_graph` lets the server merge them. For each point, server
# 1.16.3 rewrites the whole posting list of each of its terms: the last of 30,000 points took 466
# microseconds each in the default 2 segments, 155 in 16 and 100 in 64; of 100,000 points, 1,291 in
# 2 and 194 in 64. 64 empty segments take 2 s, once.
LOADING_SEGMENTS = 64

# The first version of a server that has a kind of compression, of those that 1.16 lacks.
NEWER: Mapping[Quantization, tuple[int, int]] = {"turbo4": (1, 18), "turbo2": (1, 18)}

# Key in a collection's metadata of its alias and layout.
_MARK = "citeloom"


@dataclass(frozen=True, slots=True)
class Storage:
    """Storage of a new collection on a server.

    on_disk: whether uncompressed vectors, the graph and payload indexes stay on disk, with only
    compressed vectors in memory. shards: of the collection. replicas: copies of each shard on nodes
    of a cluster. segments: per shard during a load.
    """

    on_disk: bool = False
    shards: int = 1
    replicas: int = 1
    segments: int = field(default_factory=lambda: LOADING_SEGMENTS)


def new_collection(layout: Layout, alias: str, storage: Storage) -> dict[str, Any]:
    """The arguments of `create_collection`."""
    from qdrant_client import models

    inverted = models.SparseIndexParams(on_disk=storage.on_disk)
    sparse = {LEXICAL: models.SparseVectorParams(modifier=models.Modifier.IDF, index=inverted)}
    if layout.sparse:
        sparse[SPARSE] = models.SparseVectorParams(index=inverted)
    graph = models.HnswConfigDiff(on_disk=storage.on_disk)
    return {
        "vectors_config": {DENSE: _dense(layout, storage)},
        "sparse_vectors_config": sparse,
        "optimizers_config": models.OptimizersConfigDiff(default_segment_number=storage.segments),
        "hnsw_config": graph,
        "on_disk_payload": True,
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


def _quantization(kind: Quantization) -> Any:
    from qdrant_client import models

    if kind == "int8":
        int8 = models.ScalarQuantizationConfig(
            type=models.ScalarType.INT8, quantile=0.99, always_ram=True
        )
        return models.ScalarQuantization(scalar=int8)
    if kind == "none":
        return None
    bits = models.TurboQuantBitSize
    turbo = models.TurboQuantQuantizationConfig(
        bits=bits.BITS4 if kind == "turbo4" else bits.BITS2, always_ram=True
    )
    return models.TurboQuantization(turbo=turbo)


def payload_indexes(
    *, on_disk: bool
) -> dict[str, models.KeywordIndexParams | models.IntegerIndexParams]:
    """Field to parameters of every payload index. Numbers are only asked for by range."""
    from qdrant_client import models

    keyword = models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, on_disk=on_disk)
    integer = models.IntegerIndexParams(
        type=models.IntegerIndexType.INTEGER, lookup=False, range=True, on_disk=on_disk
    )
    return {**dict.fromkeys(KEYWORDS, keyword), **dict.fromkeys(INTEGERS, integer)}


def of_right_type(indexes: Mapping[str, models.PayloadIndexInfo]) -> set[str]:
    """The fields whose payload index has the type of `payload_indexes`."""
    types = dict.fromkeys(KEYWORDS, "keyword") | dict.fromkeys(INTEGERS, "integer")
    return {name for name, index in indexes.items() if index.data_type == types.get(name)}


def mark_of(metadata: Mapping[str, Any] | None) -> tuple[str, Layout] | None:
    """Alias and layout in the metadata of a collection that citeloom made; None for any other."""
    try:
        mark = (metadata or {})[_MARK]
        return mark["alias"], Layout.from_mapping(mark["layout"])
    except (KeyError, TypeError):
        return None


def point_structs(points: PointBatch) -> list[grpc.PointStruct]:
    """Points for `upsert`, which sends them over gRPC or HTTP.

    Protobuf's own classes copy a vector from a memory view: a point of 1,024 dimensions and 120
    terms took 60 µs to make, and 140 µs as `models.PointStruct`, which qdrant-client converts to
    the same.
    """
    from qdrant_client import grpc
    from qdrant_client.conversions.conversion import payload_to_grpc

    sparse_rows = {LEXICAL: points.lexical}
    if points.sparse is not None:
        sparse_rows[SPARSE] = points.sparse
    structs = []
    for number, (identifier, payload) in enumerate(zip(points.ids, points.payloads, strict=True)):
        struct = grpc.PointStruct(
            id=grpc.PointId(uuid=identifier), payload=payload_to_grpc(dict(payload))
        )
        vectors = struct.vectors.vectors.vectors
        vectors[DENSE].dense.data.extend(points.dense[number].data)
        for name, rows in sparse_rows.items():
            terms = rows.row(number)
            vectors[name].sparse.indices.extend(terms.ids.data)
            vectors[name].sparse.values.extend(terms.weights.data)
        structs.append(struct)
    return structs


def filter_of(
    conditions: Sequence[Condition], passages: Sequence[str] | None = None
) -> models.Filter | None:
    """The points that all conditions hold for (a negated one must not), of these passages; None for
    every point.
    """
    from qdrant_client import models

    if not conditions and passages is None:
        return None
    must: list[Any] = [] if passages is None else [models.HasIdCondition(has_id=list(passages))]
    must += [_condition(condition) for condition in conditions if not condition.negated]
    must_not: list[Any] = [_condition(condition) for condition in conditions if condition.negated]
    return models.Filter(must=must, must_not=must_not)


def _condition(condition: Condition) -> models.FieldCondition:
    from qdrant_client import models

    if condition.values:
        return models.FieldCondition(
            key=condition.field, match=models.MatchAny(any=list(condition.values))
        )
    return models.FieldCondition(
        key=condition.field, range=models.Range(gte=condition.low, lte=condition.high)
    )


def query_request(query: QueryVectors, request: Request) -> models.QueryRequest:
    """One search."""
    from qdrant_client import models

    nearest: Any
    if request.by == DENSE:
        nearest = query.dense.tolist()
    else:
        terms = query.terms(request.by)
        nearest = models.SparseVector(indices=terms.ids.tolist(), values=terms.weights.tolist())
    return models.QueryRequest(
        query=nearest,
        using=request.by,
        limit=request.limit,
        filter=filter_of(request.where, request.passages),
        params=_params(request),
        with_payload=list(request.fields) or False,
    )


def _params(request: Request) -> models.SearchParams | None:
    """How the graph of dense vectors is walked; of lexical vectors, the documents whose frequencies
    count (see `edge`).

    Server 1.16 takes the restriction of frequencies and does without: they are those of all months
    there.
    """
    from qdrant_client import models

    if request.by == LEXICAL:
        months = filter_of(request.months)
        return models.SearchParams(idf=models.IdfCorpusParams(corpus=months)) if months else None
    if request.by != DENSE:
        return None
    if request.exact or request.passages is not None:
        return models.SearchParams(
            exact=True, quantization=models.QuantizationSearchParams(ignore=True)
        )
    # Where a segment has compressed vectors, they alone decide; `fusion` compares the best again.
    codes = models.QuantizationSearchParams(rescore=False)
    return models.SearchParams(hnsw_ef=HNSW_EF, quantization=codes)
