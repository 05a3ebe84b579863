"""Passages in Qdrant Edge, in process: one collection, and the collections of an alias, each in a
folder.

One process at a time may open a collection's folder. Its write-ahead log is on. API:
`qdrant_edge/__init__.pyi` of qdrant-edge-py 0.9.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pipeline.errors import PermanentFailure, SettingError
from pipeline.index.batch import PointBatch
from pipeline.index.edge_folder import (
    IDLE,
    PATIENCE,
    SharedShard,
    check_disk_space,
    create_folder,
    translate_errors,
    unusable,
)
from pipeline.index.passage_index import (
    DENSE,
    HNSW_EF,
    INTEGERS,
    KEYWORDS,
    LEXICAL,
    MOST_VALUES,
    SPARSE,
    Condition,
    Layout,
    PassageIndex,
    QueryVectors,
    Request,
    foreign_collection,
    of_month,
)
from pipeline.storage.store import file_version
from pipeline.storage.writing import write_whole

if TYPE_CHECKING:
    from pipeline.embedding.embedder import SparseVector

# Marks a folder as citeloom's, and holds the layout; created together with the folder.
LAYOUT_FILE = "citeloom.json"
# Names the live collection of an alias.
_LIVE_FILE = "live.json"
# Points from which on Edge builds a segment's graph and begins another segment. Each graph is built
# once, so a load takes time in proportion to its points: of 384 numbers 15 to 19 s of processor
# time for each 50,000, up to 300,000 at least. Until then a search compares each point, which takes
# 7 ms for 50,000, and words and filters are in memory, 1.6 KB a point; a full segment keeps its
# int8 vectors there, 0.4 KB a point. Segments of 150,000 took twice the memory to build and as long
# to search.
SEGMENT_POINTS = 50_000
# Beyond so many segments Edge merges the smallest and builds their graphs anew: never.
_MOST_SEGMENTS = 10_000
_BYTES_OF_NUMBER = 2  # of float16
# Numbers beyond this share are cut off before the rest is spread over 256 steps: a few outliers
# would waste most.
_QUANTILE = 0.99


class EdgeIndex(PassageIndex):
    """The collection in a folder. Only `create` creates the folder; `SharedShard` opens and closes
    it.
    """

    in_flight = 1  # Edge runs one update at a time
    page = 5_000  # pages of 1,000 or 20,000 took as long

    def __init__(
        self,
        folder: Path,
        *,
        on_disk: bool = False,
        patience: float = PATIENCE,
        idle: float = IDLE,
        segment_points: int = SEGMENT_POINTS,
    ) -> None:
        """on_disk: whether a new folder keeps uncompressed vectors out of memory. patience: seconds
        to wait for another process that holds the folder. idle: seconds without a request after
        which this one lets go of it. segment_points: see SEGMENT_POINTS.
        """
        self.folder = folder
        self.name, self.place = folder.name, str(folder.parent)
        self._on_disk = on_disk
        self._segment_points = segment_points
        self._shard = SharedShard(folder, patience, idle, self._changed_config)

    def layout(self) -> Layout | None:
        """As in the base class; does not open the folder."""
        file = self.folder / LAYOUT_FILE
        try:
            return Layout.from_mapping(json.loads(file.read_bytes())["layout"])
        except FileNotFoundError:
            if self.folder.exists():
                raise PermanentFailure(foreign_collection(self.name, self.place)) from None
            return None
        except OSError as error:
            raise PermanentFailure(unusable(self.folder, error)) from error
        except (KeyError, TypeError, ValueError) as error:
            raise PermanentFailure(
                f"{file} does not hold the layout of its collection ({type(error).__name__}:"
                f" {error}): delete {self.folder} and run citeloom run --months all, which loads it"
                " again from the tables"
            ) from error

    def count(self, month: str | None = None, *, wait: bool = True) -> int:
        import qdrant_edge

        if self.layout() is None:
            return 0
        where = edge_filter([] if month is None else of_month(month))
        return int(
            self._call("count", qdrant_edge.CountRequest(exact=True, filter=where), wait=wait)
        )

    def month_counts(self, *, wait: bool = True) -> dict[str, int]:
        return self._value_counts("month", wait=wait)

    def points_version(self) -> str | None:
        """As in the base class: the versions of the files of the log and of the points' ids, as
        another process left them. Edge writes them when points change; opening the folder and
        searching change others.
        """
        if self._shard.is_open():
            return None
        files = [*self.folder.glob("wal/*"), *self.folder.glob("segments/*/*id_tracker*")]
        try:
            return str([(str(file), file_version(file)) for file in sorted(files)])
        except FileNotFoundError:  # another process changes them
            return None

    def values(self, field: str) -> list[str]:
        return sorted(self._value_counts(field))

    def _value_counts(self, field: str, *, wait: bool = True) -> dict[str, int]:
        """The number of points by value of a field, of at most MOST_VALUES values."""
        import qdrant_edge

        if self.layout() is None:
            return {}
        request = qdrant_edge.FacetRequest(field, limit=MOST_VALUES, exact=True)
        hits = self._call("facet", request, wait=wait).hits
        # With exact=True, Edge also lists values that no point has any more, with a count of 0.
        return {str(hit.value): int(hit.count) for hit in hits if hit.count}

    def defer_indexing(self, new_points: int | None = None) -> None:
        """Nothing to do: Edge builds a graph once a segment is full."""

    def build_graph(self, *, wait: bool = False) -> None:
        """As in the base class; always waits. Points of a segment that is not full have no graph: a
        search compares them all.
        """
        if self.layout() is not None:
            self._call("optimize")
            self._call("flush")

    def close(self) -> None:
        self._shard.close()

    def in_use(self) -> AbstractContextManager[Any]:
        """Keep the shard open as one long request does. Raises IndexInUse if another process keeps
        it open for too long, PermanentFailure if it cannot be opened.
        """
        return self._shard.open()

    def _create(self, layout: Layout) -> None:
        self.close()  # of a folder that was deleted
        create_folder(self.folder, lambda staged: self._create_shard(staged, layout))

    def _create_shard(self, folder: Path, layout: Layout) -> None:
        """Create the collection in an empty folder."""
        import qdrant_edge

        with translate_errors(self.folder):
            config = edge_config(layout, on_disk=self._on_disk, segment_points=self._segment_points)
            shard = qdrant_edge.EdgeShard.create(str(folder), config)
            for operation in _payload_indexes({}):
                shard.update(operation)
            shard.close()
        write_whole(folder / LAYOUT_FILE, json.dumps({"layout": asdict(layout)}, indent=1).encode())

    def _changed_config(self) -> Any:
        """The configuration for a folder with other bounds of segments, as earlier versions made;
        None if nothing changes.
        """
        layout = self.layout()
        try:
            saved = json.loads((self.folder / "edge_config.json").read_bytes())
            on_disk = saved["vectors"][DENSE].get("memory") == "cold"
            threshold = saved["optimizers"]["indexing_threshold"]
        except (OSError, ValueError, KeyError, TypeError):
            return None  # opening the folder reports what is wrong
        if layout is None or threshold == indexing_threshold(layout, self._segment_points):
            return None
        return edge_config(layout, on_disk=on_disk, segment_points=self._segment_points)

    def _create_payload_indexes(self) -> None:
        for operation in _payload_indexes(self._indexed_fields()):
            self._call("update", operation)

    def _indexed_fields(self) -> Any:
        return self._call("info").payload_schema

    def _upsert(self, points: PointBatch) -> None:
        """When this returns, the log holds the points. Raises PermanentFailure for a full disk."""
        import qdrant_edge

        check_disk_space(self.folder)
        self._call("update", qdrant_edge.UpdateOperation.upsert_points(edge_points(points)))
        self._call("optimize")  # 0.03 ms unless the segment is full

    def _delete(self, ids: list[Any]) -> None:
        import qdrant_edge

        self._call("update", qdrant_edge.UpdateOperation.delete_points(ids))

    def _page(
        self, where: Sequence[Condition], fields: list[str], offset: Any
    ) -> tuple[Sequence[Any], Any]:
        import qdrant_edge

        request = qdrant_edge.ScrollRequest(
            offset=offset,
            limit=self.page,
            filter=edge_filter(where),
            with_payload=fields or False,
            with_vector=False,
        )
        records, following = self._call("scroll", request)
        return records, following

    def _query(self, searches: Sequence[tuple[QueryVectors, Request]]) -> Sequence[Sequence[Any]]:
        import qdrant_edge

        batch = qdrant_edge.QueryBatchRequest(
            [edge_query(query, request) for query, request in searches]
        )
        rankings: Sequence[Sequence[Any]] = self._call("query_batch", batch)
        return rankings

    def _retrieve(self, ids: list[str]) -> Sequence[Any]:
        records: Sequence[Any] = self._call("retrieve", ids, True, False)
        return records

    def _call(self, method: str, *arguments: Any, wait: bool = True) -> Any:
        """Call a method of the shard; its errors name the folder."""
        with self._shard.open(wait=wait) as shard, translate_errors(self.folder):
            return getattr(shard, method)(*arguments)


class EdgeCollections:
    """The collections of an alias: a folder for each in the folder of the alias, and a file that
    names the live one.
    """

    engine: Literal["edge"] = "edge"

    def __init__(
        self, folder: Path, alias: str, *, on_disk: bool = False, patience: float = PATIENCE
    ) -> None:
        """folder: of the alias. on_disk, patience: as for EdgeIndex."""
        self.folder, self.alias = folder, alias
        self.held_back: str | None = None
        self._on_disk, self._patience = on_disk, patience
        self._indexes: dict[str, EdgeIndex] = {}
        self._lock = threading.Lock()

    def live(self) -> str | None:
        """As in the protocol; also None if the live collection's folder was deleted, as a user does
        to start again. Opens no collection. Raises PermanentFailure for an unreadable file.
        """
        file = self.folder / _LIVE_FILE
        try:
            name = json.loads(file.read_bytes())["collection"]
            return name if self._is_ours(Path(name).name) else None
        except FileNotFoundError:
            return None
        except OSError as error:
            raise PermanentFailure(unusable(self.folder, error)) from error
        except (KeyError, TypeError, ValueError) as error:
            raise PermanentFailure(
                f"{file} does not name the collection that searches use ({type(error).__name__}:"
                f" {error}): delete it and run citeloom run --months all"
            ) from error

    def names(self) -> list[str]:
        """As in the protocol: folders that citeloom made."""
        try:
            names = [folder.name for folder in self.folder.iterdir()]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise PermanentFailure(unusable(self.folder, error)) from error
        return sorted(name for name in names if self._is_ours(name))

    def collection(self, name: str) -> EdgeIndex:
        """As in the protocol. Raises SettingError for an invalid folder name."""
        _check_name(name)
        with self._lock:
            if name not in self._indexes:
                self._indexes[name] = EdgeIndex(
                    self.folder / name, on_disk=self._on_disk, patience=self._patience
                )
            return self._indexes[name]

    def make_live(self, name: str) -> None:
        """As in the protocol. Raises PermanentFailure if there is no such collection."""
        if not self._is_ours(name):
            raise PermanentFailure(
                f"there is no collection {name} in {self.folder}: run citeloom reindex"
            )
        try:
            write_whole(self.folder / _LIVE_FILE, json.dumps({"collection": name}).encode())
        except OSError as error:
            raise PermanentFailure(unusable(self.folder, error)) from error

    def drop(self, name: str) -> None:
        """As in the protocol; nothing if there is no such collection. Raises TransientFailure if
        another process holds it, PermanentFailure if citeloom did not make it.
        """
        _check_name(name)
        if name == self.live():
            raise SettingError(
                f"searches use the collection {name}: make another one live before you drop it"
            )
        folder = self.folder / name
        if folder.exists():
            if not self._is_ours(name):
                raise PermanentFailure(foreign_collection(name, str(self.folder)))
            self._retire(name)
        self._delete_retired()

    def close(self) -> None:
        with self._lock:
            for index in self._indexes.values():
                index.close()

    def _retire(self, name: str) -> None:
        """Rename a collection's folder before its deletion, so that a killed process leaves no
        incomplete one.
        """
        index = self.collection(name)
        # A broken collection can be dropped too.
        with contextlib.suppress(PermanentFailure), index.in_use():
            pass  # no other process uses it
        index.close()
        retired = index.folder.with_name(f".{name}.{os.getpid()}.gone")
        try:
            index.folder.rename(retired)
        except OSError as error:
            raise PermanentFailure(unusable(index.folder, error)) from error

    def _delete_retired(self) -> None:
        """Delete retired folders, also those of a process that was killed."""
        try:
            for retired in self.folder.glob(".*.gone"):
                with contextlib.suppress(FileNotFoundError):  # another process deletes it too
                    shutil.rmtree(retired)
        except OSError as error:
            raise PermanentFailure(unusable(self.folder, error)) from error

    def _is_ours(self, name: str) -> bool:
        return not name.startswith(".") and (self.folder / name / LAYOUT_FILE).is_file()


def _payload_indexes(present: Any) -> Iterator[Any]:
    """Operations that create the missing payload indexes. present: those that exist, by field."""
    import qdrant_edge

    # Mapped files, once a segment is full: in memory, they and the words took 1.6 KB a point more,
    # and opening the folder half as long again. Numbers are only asked for by range.
    mapped = qdrant_edge.Memory.Cached
    keyword = qdrant_edge.KeywordIndexParams(memory=mapped)
    integer = qdrant_edge.IntegerIndexParams(lookup=False, range=True, memory=mapped)
    for names, kind in ((KEYWORDS, keyword), (INTEGERS, integer)):
        for name in names:
            if name not in present:
                yield qdrant_edge.UpdateOperation.create_field_index(name, kind)


def _check_name(name: str) -> None:
    if not name or name.startswith(".") or Path(name).name != name:
        raise SettingError(f"{name!r} cannot name a collection")


def edge_config(layout: Layout, *, on_disk: bool, segment_points: int = SEGMENT_POINTS) -> Any:
    """The configuration of a collection; float16 loses nothing, since the tables hold no more."""
    import qdrant_edge as edge

    dense = edge.EdgeVectorParams(
        size=layout.dimensions,
        distance=edge.Distance.Cosine,
        datatype=edge.VectorStorageDatatype.Float16,
        memory=edge.Memory.Cold if on_disk else edge.Memory.Cached,
        quantization_config=_quantization(layout),
    )
    mapped = edge.Memory.Cached
    sparse: dict[str, Any] = {
        LEXICAL: edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf, memory=mapped)
    }
    if layout.sparse:
        sparse[SPARSE] = edge.EdgeSparseVectorParams(memory=mapped)
    optimizers = edge.EdgeOptimizersConfig(
        default_segment_number=_MOST_SEGMENTS,
        indexing_threshold=indexing_threshold(layout, segment_points),
    )
    return edge.EdgeConfig(
        vectors={DENSE: dense}, sparse_vectors=sparse, optimizers=optimizers, wal_enabled=True
    )


def indexing_threshold(layout: Layout, segment_points: int) -> int:
    """Kilobytes of the largest vectors of so many points, from which on Edge builds their graph."""
    return segment_points * layout.dimensions * _BYTES_OF_NUMBER // 1024


def _quantization(layout: Layout) -> Any:
    import qdrant_edge as edge

    memory = edge.Memory.Pinned
    if layout.quantization == "none":
        return None
    if layout.quantization == "int8":
        return edge.ScalarQuantizationConfig(
            edge.ScalarType.Int8, quantile=_QUANTILE, memory=memory
        )
    bits = edge.TurboQuantBitSize
    size = bits.Bits4 if layout.quantization == "turbo4" else bits.Bits2
    return edge.TurboQuantQuantizationConfig(bits=size, memory=memory)


def edge_points(points: PointBatch) -> list[Any]:
    """Points for an upsert.

    Edge reads numbers one by one through Python, from whatever can be iterated: a row of 1,024 took
    it 13 µs as a memory view, 18 µs as a list made for it, 28 µs as an array.
    """
    import numpy as np
    import qdrant_edge as edge

    edge_points, dense = [], np.ascontiguousarray(points.dense, np.float32)
    for number, identifier in enumerate(points.ids):
        vectors: dict[str, Any] = {
            DENSE: dense[number].data,
            LEXICAL: _terms(points.lexical.row(number)),
        }
        if points.sparse is not None:
            vectors[SPARSE] = _terms(points.sparse.row(number))
        edge_points.append(edge.Point(identifier, vectors, dict(points.payloads[number])))
    return edge_points


def _terms(vector: SparseVector) -> Any:
    import qdrant_edge as edge

    return edge.SparseVector(_view(vector.ids), _view(vector.weights))


def _view(numbers: Any) -> Any:
    """A memory view, which Edge reads like a list although it is not typed as one."""
    return numbers.data


def edge_filter(conditions: Sequence[Condition], passages: Sequence[str] | None = None) -> Any:
    """A filter by conditions that must all hold (a negated one must not), and by ids."""
    import qdrant_edge as edge

    must: list[Any] = [] if passages is None else [edge.HasIdCondition(set(passages))]
    must += [_condition(condition) for condition in conditions if not condition.negated]
    must_not = [_condition(condition) for condition in conditions if condition.negated]
    return edge.Filter(must=must, must_not=must_not)


def _condition(condition: Condition) -> Any:
    import qdrant_edge as edge

    if condition.values:
        return edge.FieldCondition(condition.field, match=edge.MatchAny(list(condition.values)))
    return edge.FieldCondition(
        condition.field, range=edge.RangeFloat(gte=condition.low, lte=condition.high)
    )


def edge_query(query: QueryVectors, request: Request) -> Any:
    """One search."""
    import qdrant_edge as edge

    nearest = _view(query.dense) if request.by == DENSE else _terms(query.terms(request.by))
    return edge.QueryRequest(
        limit=request.limit,
        query=edge.Query.Nearest(nearest, using=request.by),
        filter=edge_filter(request.where, request.passages),
        params=_params(request),
        with_payload=list(request.fields) or False,
    )


def _params(request: Request) -> Any:
    """How the graph of dense vectors is walked.

    Of lexical vectors, the documents whose frequencies count: those of the months searched. Over
    all months, 9 of 25 questions on the first of three had other passages among the first three
    once the later ones were loaded.
    """
    import qdrant_edge as edge

    if request.by == LEXICAL:
        months = request.months
        return edge.SearchParams(idf=edge.IdfParams(corpus=edge_filter(months))) if months else None
    if request.by != DENSE:
        return None
    if request.exact or request.passages is not None:
        return edge.SearchParams(
            exact=True, quantization=edge.QuantizationSearchParams(ignore=True)
        )
    # Where a segment has compressed vectors, they alone decide; `fusion` compares the best again.
    codes = edge.QuantizationSearchParams(rescore=False)
    return edge.SearchParams(hnsw_ef=HNSW_EF, quantization=codes)
