"""Passages in Qdrant Edge, in process: one collection, and the collections of an alias, each in a folder.

One process at a time may open a collection's folder. Its write-ahead log is on. API: `qdrant_edge/__init__.pyi` of
qdrant-edge-py 0.9.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from pipeline.errors import MissingInput, PermanentFailure, SettingError
from pipeline.index.batch import PointBatch, check_points
from pipeline.index.edge_folder import (
    PATIENCE,
    check_disk_space,
    close_shard,
    create_folder,
    open_shard,
    translate_errors,
    unusable,
)
from pipeline.index.edge_form import edge_config, edge_filter, edge_points, edge_query
from pipeline.index.layout import Layout
from pipeline.index.passage_index import (
    INTEGERS,
    KEYWORDS,
    MOST_VALUES,
    Condition,
    PointId,
    Query,
    Request,
    ScoredPassage,
    another_layout,
    check_searches,
    foreign_collection,
    of_month,
)
from pipeline.storage.writing import write_whole

# Marks a folder as citeloom's, and holds the layout; created together with the folder.
LAYOUT_FILE = "citeloom.json"
# Names the live collection of an alias.
_LIVE_FILE = "live.json"
# Points on one page of a listing, and ids in one deletion. Pages of 1,000 or 20,000 took as long.
_PAGE = 5_000
# Queries in one request, whose hits and payloads are in memory at once.
_MOST_QUERIES = 64


class EdgeIndex:
    """The collection in a folder; thread-safe. The folder is opened on first use, and only `create` creates it."""

    def __init__(self, folder: Path, *, on_disk: bool = False, patience: float = PATIENCE) -> None:
        """on_disk: whether a new folder keeps uncompressed vectors out of memory. patience: seconds to wait for another
        process that holds the folder."""
        self.folder = folder
        self._on_disk, self._patience = on_disk, patience
        self._shard: Any = None
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def in_flight(self) -> int:
        """Edge runs one update at a time."""
        return 1

    def layout(self) -> Layout | None:
        """As in the protocol; does not open the folder."""
        file = self.folder / LAYOUT_FILE
        try:
            return Layout.from_mapping(json.loads(file.read_bytes())["layout"])
        except FileNotFoundError:
            if self.folder.exists():
                raise PermanentFailure(foreign_collection(self.name, str(self.folder.parent))) from None
            return None
        except OSError as error:
            raise PermanentFailure(unusable(self.folder, error)) from error
        except (KeyError, TypeError, ValueError) as error:
            raise PermanentFailure(
                f"{file} does not hold the layout of its collection ({type(error).__name__}: {error}): delete "
                f"{self.folder} and run citeloom run --months all, which loads it again from the tables"
            ) from error

    def create(self, layout: Layout) -> None:
        """As in the protocol; a folder of an earlier commit may lack payload indexes."""
        if self.layout() is None:
            self.close()  # of a folder that was deleted
            create_folder(self.folder, lambda staged: self._create_shard(staged, layout))
        existing = self.layout()
        if existing is not None and existing != layout:
            raise PermanentFailure(another_layout(self.name, existing, layout))
        present = self._call("info").payload_schema
        for operation in _payload_indexes(present):
            self._call("update", operation)

    def upsert(self, points: PointBatch) -> None:
        """As in the protocol: when this returns, the log holds the points. Raises PermanentFailure for vectors that the
        collection cannot hold, and for a full disk."""
        import qdrant_edge

        check_points(points, self._needed_layout())
        for part in points.split():
            check_disk_space(self.folder)
            self._call("update", qdrant_edge.UpdateOperation.upsert_points(edge_points(part)))

    def delete(self, ids: Sequence[PointId]) -> None:
        import qdrant_edge

        for start in range(0, len(ids), _PAGE):
            part: list[Any] = list(ids[start : start + _PAGE])
            self._call("update", qdrant_edge.UpdateOperation.delete_points(part))

    def contents(self, month: str) -> Iterator[tuple[PointId, str | None]]:
        for record in self._scroll(edge_filter(of_month(month)), ["digest"]):
            digest = (record.payload or {}).get("digest")
            yield _id_of(record), None if digest is None else str(digest)

    def outside(self, months: Sequence[str]) -> Iterator[PointId]:
        others = Condition("month", tuple(months), negated=True)
        where = edge_filter([others] if months else [])
        return map(_id_of, self._scroll(where, []))

    def count(self, month: str | None = None, *, wait: bool = True) -> int:
        import qdrant_edge

        if self.layout() is None:
            return 0
        where = edge_filter([] if month is None else of_month(month))
        return int(self._call("count", qdrant_edge.CountRequest(exact=True, filter=where), wait=wait))

    def values(self, field: str) -> list[str]:
        import qdrant_edge

        if self.layout() is None:
            return []
        # With exact=True, Edge also lists values that no point has any more, with a count of 0.
        hits = self._call("facet", qdrant_edge.FacetRequest(field, limit=MOST_VALUES, exact=True)).hits
        return sorted(str(hit.value) for hit in hits if hit.count)

    def search(self, searches: Sequence[tuple[Query, Request]]) -> list[list[ScoredPassage]]:
        import qdrant_edge

        layout = self._needed_layout()
        check_searches(searches, layout)
        rankings: list[list[ScoredPassage]] = []
        for start in range(0, len(searches), _MOST_QUERIES):
            part = searches[start : start + _MOST_QUERIES]
            batch = qdrant_edge.QueryBatchRequest([edge_query(query, request, layout) for query, request in part])
            for points in self._call("query_batch", batch):
                rankings.append([_scored_passage(point) for point in points])
        return rankings

    def payloads(self, passages: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
        records = self._call("retrieve", list(passages), True, False)
        return {str(record.id): record.payload or {} for record in records}

    def defer_indexing(self) -> None:
        """Nothing to do: Edge builds graphs only in `build_graph`."""

    def build_graph(self, *, wait: bool = False) -> None:
        """As in the protocol; always waits. Below Edge's threshold of points no graph is built."""
        if self.layout() is not None:
            self._call("flush")
            self._call("optimize")
            self._call("flush")

    def indexed_vectors(self) -> int:
        """Number of vectors in a graph or an inverted index; searches compare with each of the others."""
        return int(self._call("info").indexed_vectors_count)

    def hold(self) -> None:
        """Take the folder's lock, as every call does that uses the folder."""
        self._open()

    def close(self) -> None:
        with self._lock:
            shard, self._shard = self._shard, None
            if shard is not None:
                close_shard(self.folder, shard)

    def _create_shard(self, folder: Path, layout: Layout) -> None:
        """Create the collection in an empty folder."""
        import qdrant_edge

        with translate_errors(self.folder):
            shard = qdrant_edge.EdgeShard.create(str(folder), edge_config(layout, on_disk=self._on_disk))
            for operation in _payload_indexes({}):
                shard.update(operation)
            shard.close()
        write_whole(folder / LAYOUT_FILE, json.dumps({"layout": asdict(layout)}, indent=1).encode())

    def _needed_layout(self) -> Layout:
        layout = self.layout()
        if layout is None:
            raise MissingInput(
                f"there is no collection in {self.folder}: run citeloom run --months all --until index_receipts"
            )
        return layout

    def _scroll(self, where: Any, fields: list[str]) -> Iterator[Any]:
        import qdrant_edge

        if self.layout() is None:
            return
        offset = None
        while True:
            request = qdrant_edge.ScrollRequest(
                offset=offset, limit=_PAGE, filter=where, with_payload=fields or False, with_vector=False
            )
            records, offset = self._call("scroll", request)
            yield from records
            if offset is None:
                return

    def _call(self, method: str, *arguments: Any, wait: bool = True) -> Any:
        """Call a method of the shard; its errors name the folder."""
        shard = self._open(wait=wait)
        try:
            with translate_errors(self.folder):
                return getattr(shard, method)(*arguments)
        except PermanentFailure:
            if shard is self._shard:
                raise
        return self._call(method, *arguments, wait=wait)  # another thread closed the folder in the meantime

    def _open(self, *, wait: bool = True) -> Any:
        with self._lock:
            if self._shard is None:
                self._shard = open_shard(self.folder, self._patience if wait else 0.0)
            return self._shard


class EdgeCollections:
    """The collections of an alias: a folder for each in the folder of the alias, and a file that names the live one."""

    engine: Literal["edge"] = "edge"

    def __init__(self, folder: Path, alias: str, *, on_disk: bool = False, patience: float = PATIENCE) -> None:
        """folder: of the alias. on_disk, patience: as for EdgeIndex."""
        self.folder, self.alias = folder, alias
        self._on_disk, self._patience = on_disk, patience
        self._indexes: dict[str, EdgeIndex] = {}
        self._lock = threading.Lock()

    def live(self) -> str | None:
        """As in the protocol; also None if the live collection's folder was deleted, as a user does to start again.
        Opens no collection. Raises PermanentFailure for an unreadable file."""
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
                f"{file} does not name the collection that searches use ({type(error).__name__}: {error}): delete it "
                f"and run citeloom run --months all"
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
                self._indexes[name] = EdgeIndex(self.folder / name, on_disk=self._on_disk, patience=self._patience)
            return self._indexes[name]

    def make_live(self, name: str) -> None:
        """As in the protocol. Raises PermanentFailure if there is no such collection."""
        if not self._is_ours(name):
            raise PermanentFailure(f"there is no collection {name} in {self.folder}: run citeloom reindex")
        try:
            write_whole(self.folder / _LIVE_FILE, json.dumps({"collection": name}).encode())
        except OSError as error:
            raise PermanentFailure(unusable(self.folder, error)) from error

    def drop(self, name: str) -> None:
        """As in the protocol; nothing if there is no such collection. Raises TransientFailure if another process holds
        it, PermanentFailure if citeloom did not make it."""
        _check_name(name)
        if name == self.live():
            raise SettingError(f"searches use the collection {name}: make another one live before you drop it")
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
        """Rename a collection's folder before its deletion, so that a killed process leaves no incomplete one."""
        index = self.collection(name)
        with contextlib.suppress(PermanentFailure):  # a broken collection can be dropped too
            index.hold()
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

    kinds = dict.fromkeys(KEYWORDS, qdrant_edge.PayloadSchemaType.Keyword)
    kinds |= dict.fromkeys(INTEGERS, qdrant_edge.PayloadSchemaType.Integer)
    for name, kind in kinds.items():
        if name not in present:
            yield qdrant_edge.UpdateOperation.create_field_index(name, kind)


def _id_of(record: Any) -> PointId:
    """A UUID as text; a number, which only a foreign point has, as it is."""
    return record.id if isinstance(record.id, int) else str(record.id)


def _scored_passage(point: Any) -> ScoredPassage:
    return ScoredPassage(str(point.id), point.score, point.payload or {})


def _check_name(name: str) -> None:
    if not name or name.startswith(".") or Path(name).name != name:
        raise SettingError(f"{name!r} cannot name a collection")
