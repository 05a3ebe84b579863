"""Qdrant Edge: a collection in process, in a folder of the data root, with its write-ahead log on.

One process at a time may open the folder. API: `qdrant_edge/__init__.pyi` of qdrant-edge-py 0.9.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pipeline.errors import MissingInput, PermanentFailure
from pipeline.index.batch import PointBatch, check_points, check_searches
from pipeline.index.edge_folder import (
    PATIENCE,
    cannot_be_used,
    close_shard,
    explained,
    insist_on_room,
    make_whole,
    open_shard,
)
from pipeline.index.edge_form import edge_config, edge_filter, edge_points, edge_query
from pipeline.index.layout import Layout
from pipeline.index.passage_index import (
    INTEGERS,
    KEYWORDS,
    MOST_VALUES,
    Condition,
    Found,
    PointId,
    Query,
    Request,
    another_layout,
    best_first,
    none_of_ours,
    of_month,
)
from pipeline.storage.writing import write_whole

# Says that a folder is ours, and its layout; it comes with the folder.
LAYOUT_FILE = "citeloom.json"
# Points of one page of a listing, and ids of one deletion. Pages of 1,000 or 20,000 took as long.
_PAGE = 5_000
# Queries whose answers are in memory at once, with the payloads of all their hits.
_MOST_QUERIES = 64


class EdgeIndex:
    """The collection in a folder. The folder is opened on first use, and never made by a call that only reads."""

    def __init__(self, folder: Path, *, on_disk: bool = False, patience: float = PATIENCE) -> None:
        """on_disk: whether a folder that is made keeps whole vectors out of memory. patience: seconds to wait for
        another process that holds the folder."""
        self.folder = folder
        self._on_disk, self._patience = on_disk, patience
        self._shard: Any = None
        self._opening = threading.Lock()

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def in_flight(self) -> int:
        """Edge works on one update at a time."""
        return 1

    @property
    def retries(self) -> int:
        """Nothing of Edge's passes by itself."""
        return 0

    def layout(self) -> Layout | None:
        """As the protocol says; the folder is not opened for it."""
        file = self.folder / LAYOUT_FILE
        try:
            return Layout.from_mapping(json.loads(file.read_bytes())["layout"])
        except FileNotFoundError:
            if self.folder.exists():
                raise PermanentFailure(none_of_ours(self.name, str(self.folder.parent))) from None
            return None
        except OSError as error:
            raise PermanentFailure(cannot_be_used(self.folder, error)) from error
        except (KeyError, TypeError, ValueError) as error:
            raise PermanentFailure(
                f"{file} does not tell the layout of its collection ({type(error).__name__}: {error}): delete "
                f"{self.folder} and run citeloom run --months all, which loads it again from the tables"
            ) from error

    def create(self, layout: Layout) -> None:
        """As the protocol says; the folder comes with its payload indexes, unless an older citeloom made it."""
        if self.layout() is None:
            self.close()  # of a folder that vanished
            make_whole(self.folder, lambda staged: self._fill(staged, layout))
        found = self.layout()
        if found is not None and found != layout:
            raise PermanentFailure(another_layout(self.name, found, layout))
        present = self._ask("info").payload_schema
        for operation in _payload_indexes(present):
            self._ask("update", operation)

    def upsert(self, points: PointBatch) -> None:
        """As the protocol says. A batch is in the log when this returns, and outlives the process. Raises
        PermanentFailure for vectors that the collection cannot hold."""
        import qdrant_edge

        check_points(points, self._needed_layout())
        for part in points.split():
            insist_on_room(self.folder)
            self._ask("update", qdrant_edge.UpdateOperation.upsert_points(edge_points(part)))

    def delete(self, ids: Sequence[PointId]) -> None:
        import qdrant_edge

        for start in range(0, len(ids), _PAGE):
            part: list[Any] = list(ids[start : start + _PAGE])
            self._ask("update", qdrant_edge.UpdateOperation.delete_points(part))

    def contents(self, month: str) -> Iterator[tuple[PointId, str | None]]:
        """As the protocol says; nothing where there is no collection."""
        for record in self._scroll(edge_filter(of_month(month)), ["digest"]):
            digest = (record.payload or {}).get("digest")
            yield _id_of(record), None if digest is None else str(digest)

    def outside(self, months: Sequence[str]) -> Iterator[PointId]:
        """As the protocol says; nothing where there is no collection."""
        others = Condition("month", tuple(months), negated=True)
        where = edge_filter([others] if months else [])
        return map(_id_of, self._scroll(where, []))

    def count(self, month: str | None = None, *, wait: bool = True) -> int:
        import qdrant_edge

        if self.layout() is None:
            return 0
        where = edge_filter([] if month is None else of_month(month))
        return int(self._ask("count", qdrant_edge.CountRequest(exact=True, filter=where), wait=wait))

    def values(self, field: str) -> list[str]:
        import qdrant_edge

        if self.layout() is None:
            return []
        # Counted exactly, Edge also names values that no point has any more, with a count of 0.
        hits = self._ask("facet", qdrant_edge.FacetRequest(field, limit=MOST_VALUES, exact=True)).hits
        return sorted(str(hit.value) for hit in hits if hit.count)

    def search(self, searches: Sequence[tuple[Query, Request]]) -> list[list[Found]]:
        import qdrant_edge

        layout = self._needed_layout()
        check_searches(searches, layout)
        found: list[list[Found]] = []
        for start in range(0, len(searches), _MOST_QUERIES):
            part = searches[start : start + _MOST_QUERIES]
            batch = qdrant_edge.QueryBatchRequest([edge_query(query, request, layout) for query, request in part])
            for (_, request), points in zip(part, self._ask("query_batch", batch), strict=True):
                found.append(best_first([_found(point) for point in points], request.limit))
        return found

    def defer_indexing(self) -> None:
        """Nothing: Edge builds its graphs in `settle` alone."""

    def settle(self, *, wait: bool = False) -> None:
        """Edge builds its graphs here and nowhere else, while the caller waits; below its threshold this is nothing."""
        if self.layout() is not None:
            self._ask("flush")
            self._ask("optimize")
            self._ask("flush")

    def indexed_vectors(self) -> int:
        """Vectors that a graph or an inverted index leads to; others are compared one by one."""
        return int(self._ask("info").indexed_vectors_count)

    def hold(self) -> None:
        """Take the folder's lock, as every call does that needs the folder."""
        self._open()

    def close(self) -> None:
        with self._opening:
            shard, self._shard = self._shard, None
            if shard is not None:
                close_shard(self.folder, shard)

    def _fill(self, folder: Path, layout: Layout) -> None:
        """Make the collection in a folder that is empty."""
        import qdrant_edge

        with explained(self.folder):
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
            records, offset = self._ask("scroll", request)
            yield from records
            if offset is None:
                return

    def _ask(self, method: str, *arguments: Any, wait: bool = True) -> Any:
        """Call a method of the shard; what goes wrong there is told as a failure of this folder."""
        shard = self._open(wait=wait)
        try:
            with explained(self.folder):
                return getattr(shard, method)(*arguments)
        except PermanentFailure:
            if shard is self._shard:
                raise
        return self._ask(method, *arguments, wait=wait)  # another thread let go of the folder in between

    def _open(self, *, wait: bool = True) -> Any:
        with self._opening:
            if self._shard is None:
                self._shard = open_shard(self.folder, self._patience if wait else 0.0)
            return self._shard


def _payload_indexes(present: Any) -> Iterator[Any]:
    """The operations that make the payload indexes which are not present."""
    import qdrant_edge

    kinds = dict.fromkeys(KEYWORDS, qdrant_edge.PayloadSchemaType.Keyword)
    kinds |= dict.fromkeys(INTEGERS, qdrant_edge.PayloadSchemaType.Integer)
    for name, kind in kinds.items():
        if name not in present:
            yield qdrant_edge.UpdateOperation.create_field_index(name, kind)


def _id_of(record: Any) -> PointId:
    """A passage's UUID as text; a foreign point's number as it is."""
    return record.id if isinstance(record.id, int) else str(record.id)


def _found(point: Any) -> Found:
    return Found(str(point.id), point.score, point.payload or {})
