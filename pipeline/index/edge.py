"""Qdrant Edge: the index in process, in a folder of the data root, with its write-ahead log on.

One process at a time may open the folder. API: `qdrant_edge/__init__.pyi` of qdrant-edge-py 0.9.
Not here: when a handle is opened and let go (`opening`).
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock, Timeout

from pipeline.errors import CiteloomError, PermanentFailure, TransientFailure
from pipeline.index.passage_index import (
    DENSE,
    INTEGERS,
    KEYWORDS,
    MOST_VALUES,
    RRF_K,
    SPARSE,
    Condition,
    Found,
    Layout,
    Point,
    Restriction,
    batched,
    best_first,
    candidates,
    collection_differs,
    of_month,
)
from pipeline.tables import write_whole

# How long to wait for another process: a search or a small month is over by then, a long load is not.
PATIENCE = 10.0
_PAGE = 5_000
# Edge writes through memory maps, so a full disk is no error that it could report: the kernel kills the process
# (SIGBUS). A new collection took 17 MB, and a write-ahead log's segment is 32 MB.
_ROOM = 64 << 20

_WAYS_OUT = {
    errno.EACCES: "let this user read and write the folder, or set CITELOOM_DATA to one of its own",
    errno.EPERM: "let this user read and write the folder, or set CITELOOM_DATA to one of its own",
    errno.EROFS: "make the file system writable, or set CITELOOM_DATA to a folder that is",
    errno.ENOSPC: "make room on that disk, then run again",
    errno.EDQUOT: "make room in this user's quota, then run again",
    errno.EFBIG: "raise the limit on a file's size (ulimit -f), then run again",
    errno.EMFILE: "raise the limit on open files (ulimit -n 65536), then run again",
    errno.ENFILE: "the whole machine has no open file left: close programs, then run again",
    errno.ENOMEM: "free some memory, or set CITELOOM_QDRANT_URL to a Qdrant server",
    errno.EIO: "the disk fails to read or write: see to it, then run again",
}


class EdgeIndex:
    """The collection in a folder. The folder is opened on first use, and never made by a call that only reads."""

    engine: Literal["edge"] = "edge"

    def __init__(self, folder: Path, *, patience: float = PATIENCE) -> None:
        self.folder = folder
        self._patience = patience
        self._shard: Any = None

    def layout(self) -> Layout | None:
        """Read from the collection's own configuration; the folder is not opened for it."""
        file = self.folder / "edge_config.json"
        try:
            if not file.exists():
                return None
            config = json.loads(file.read_text())
            dimensions = config["vectors"][DENSE]["size"]
            modifier = config["sparse_vectors"][SPARSE].get("modifier")
        except OSError as error:
            raise PermanentFailure(_cannot_be_used(self.folder, error)) from error
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise PermanentFailure(
                f"{self.folder} is no collection of ours ({type(error).__name__} in {file.name}: {error}): move it away"
            ) from error
        return Layout(dimensions, modifier == "idf")

    def ensure_collection(self, layout: Layout) -> None:
        """As the protocol says; payload indexes come with the folder."""
        found = self.layout()
        if found is None:
            self._create(layout)
        elif found != layout:
            raise PermanentFailure(collection_differs(self.folder.name, found, layout))

    def upsert(self, points: Sequence[Point]) -> None:
        import qdrant_edge

        for batch in batched(points):
            _insist_on_room(self.folder)
            self._ask("update", qdrant_edge.UpdateOperation.upsert_points([_edge_point(point) for point in batch]))

    def delete(self, passage_ids: Sequence[str]) -> None:
        import qdrant_edge

        for batch in batched(passage_ids):
            self._ask("update", qdrant_edge.UpdateOperation.delete_points(list(batch)))

    def ids_of_month(self, month: str) -> dict[str, str]:
        return {str(record.id): record.payload["digest"] for record in self._scroll(of_month(month), ["digest"])}

    def count(self, month: str, *, wait: bool = True) -> int:
        import qdrant_edge

        if self.layout() is None:
            return 0
        request = qdrant_edge.CountRequest(exact=True, filter=_filter(of_month(month)))
        return int(self._ask("count", request, wait=wait))

    def models(self) -> list[str]:
        return self.values("model")

    def values(self, field: str) -> list[str]:
        import qdrant_edge

        if self.layout() is None:
            return []
        hits = self._ask("facet", qdrant_edge.FacetRequest(field, limit=MOST_VALUES)).hits
        return sorted(str(hit.value) for hit in hits)

    def search(
        self,
        dense: Sequence[float],
        sparse_ids: Sequence[int],
        sparse_weights: Sequence[float],
        *,
        limit: int,
        restriction: Restriction,
    ) -> list[Found]:
        import qdrant_edge

        where, most = _filter(restriction.conditions()), candidates(limit)
        vectors: list[tuple[Any, str]] = [
            (list(dense), DENSE),
            (qdrant_edge.SparseVector(list(sparse_ids), list(sparse_weights)), SPARSE),
        ]
        request = qdrant_edge.QueryRequest(
            limit=most,
            prefetches=[
                qdrant_edge.Prefetch(limit=most, query=qdrant_edge.Query.Nearest(vector, using=name), filter=where)
                for vector, name in vectors
            ],
            query=qdrant_edge.Fusion.Rrf(k=RRF_K),  # type: ignore[arg-type]  # its stub forgets the base class
            with_payload=True,
        )
        points = self._ask("query", request)
        return best_first([Found(str(point.id), point.score, point.payload) for point in points], limit)

    def settle(self) -> None:
        """Edge builds its HNSW graphs here and nowhere else; below its threshold this is nothing."""
        self._ask("optimize")
        self._ask("flush")

    def close(self) -> None:
        if self._shard is not None:
            self._shard.close()
            self._shard = None
            with contextlib.suppress(OSError):
                _holder_file(self.folder).unlink(missing_ok=True)

    def _scroll(self, conditions: list[Condition], fields: list[str]) -> Iterator[Any]:
        import qdrant_edge

        offset = None
        while True:
            request = qdrant_edge.ScrollRequest(
                offset=offset, limit=_PAGE, filter=_filter(conditions), with_payload=fields, with_vector=False
            )
            records, offset = self._ask("scroll", request)
            yield from records
            if offset is None:
                return

    def _create(self, layout: Layout) -> None:
        """Make the folder under another name and move it into place, so that a killed process leaves no half."""
        self.close()
        try:
            self._make_whole(layout)
        except CiteloomError:
            raise
        except Timeout as error:
            raise TransientFailure(f"another process has been making {self.folder} for 60 s: run again") from error
        except Exception as error:  # the operating system's, or the only class that qdrant_edge raises
            raise PermanentFailure(_cannot_be_used(self.folder, error)) from error
        found = self.layout()
        if found is not None and found != layout:
            raise PermanentFailure(collection_differs(self.folder.name, found, layout))

    def _make_whole(self, layout: Layout) -> None:
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(self.folder.with_name(f"{self.folder.name}.lock"), timeout=60):
            for orphan in self.folder.parent.glob(f".{self.folder.name}.*.new"):
                shutil.rmtree(orphan)
            if self.layout() is None:
                _insist_on_room(self.folder.parent)
                staged = self.folder.with_name(f".{self.folder.name}.{os.getpid()}.new")
                _make_shard(staged, layout)
                staged.rename(self.folder)

    def _ask(self, method: str, *arguments: Any, wait: bool = True) -> Any:
        """Call a method of the shard; what goes wrong there is told as a failure of this folder."""
        call = getattr(self._open(wait=wait), method)
        try:
            return call(*arguments)
        except Exception as error:  # the only class that qdrant_edge raises
            raise PermanentFailure(_cannot_be_used(self.folder, error)) from error

    def _open(self, *, wait: bool = True) -> Any:
        if self._shard is None:
            self._shard = self._load(self._patience if wait else 0.0)
            holder = {"pid": os.getpid(), "program": Path(sys.argv[0]).name}
            with contextlib.suppress(OSError):  # it only lets another process's message name this one
                write_whole(_holder_file(self.folder), json.dumps(holder).encode())
        return self._shard

    def _load(self, patience: float) -> Any:
        import qdrant_edge

        end = time.monotonic() + patience
        while True:
            try:
                return qdrant_edge.EdgeShard.load(str(self.folder))
            except Exception as error:  # the only class that qdrant_edge raises
                if "WouldBlock" not in str(error):
                    raise PermanentFailure(_cannot_be_used(self.folder, error)) from error
                if time.monotonic() >= end:
                    raise TransientFailure(_held(self.folder)) from error
            time.sleep(0.1)


def _cannot_be_used(folder: Path, error: Exception) -> str:
    """The message for a folder that fails: the operating system's reason and its way out, else to make it again."""
    for number, way_out in _WAYS_OUT.items():
        if os.strerror(number) in str(error):
            return f"the index in {folder} cannot be used: {os.strerror(number)} ({error}): {way_out}"
    return (
        f"the index in {folder} cannot be used ({error}): delete the folder and run citeloom run --months all, which "
        f"loads it again from the tables"
    )


def _insist_on_room(folder: Path) -> None:
    try:
        free = shutil.disk_usage(folder).free
    except FileNotFoundError:
        return  # a folder that is gone is told of by whoever opens it
    if free < _ROOM:
        raise PermanentFailure(
            f"the disk of {folder} has {free >> 20} MB left, and Qdrant Edge needs {_ROOM >> 20} MB to go on: make "
            f"room on it, then run again"
        )


def _make_shard(folder: Path, layout: Layout) -> None:
    import qdrant_edge

    folder.mkdir()
    shard = qdrant_edge.EdgeShard.create(str(folder), _config(layout))
    for name in KEYWORDS:
        shard.update(qdrant_edge.UpdateOperation.create_field_index(name, qdrant_edge.PayloadSchemaType.Keyword))
    for name in INTEGERS:
        shard.update(qdrant_edge.UpdateOperation.create_field_index(name, qdrant_edge.PayloadSchemaType.Integer))
    shard.close()


def _config(layout: Layout) -> Any:
    import qdrant_edge

    dense = qdrant_edge.EdgeVectorParams(size=layout.dimensions, distance=qdrant_edge.Distance.Cosine)
    modifier = qdrant_edge.Modifier.Idf if layout.sparse_idf else None
    sparse = qdrant_edge.EdgeSparseVectorParams(modifier=modifier)
    return qdrant_edge.EdgeConfig(vectors={DENSE: dense}, sparse_vectors={SPARSE: sparse}, wal_enabled=True)


def _edge_point(point: Point) -> Any:
    import qdrant_edge

    sparse = qdrant_edge.SparseVector(point.sparse_ids, point.sparse_weights)
    return qdrant_edge.Point(point.passage_id, {DENSE: point.dense, SPARSE: sparse}, dict(point.payload))


def _filter(conditions: list[Condition]) -> Any:
    import qdrant_edge

    return qdrant_edge.Filter(must=[_condition(condition) for condition in conditions])


def _condition(condition: Condition) -> Any:
    import qdrant_edge

    if condition.values:
        return qdrant_edge.FieldCondition(condition.field, match=qdrant_edge.MatchAny(list(condition.values)))
    return qdrant_edge.FieldCondition(
        condition.field, range=qdrant_edge.RangeFloat(gte=condition.low, lte=condition.high)
    )


def _holder_file(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.holder.json")


def _held(folder: Path) -> str:
    try:
        holder = json.loads(_holder_file(folder).read_text())
        who = f"process {holder['pid']} ({holder['program']})"
    except (OSError, ValueError, KeyError):
        who = "another process"
    return (
        f"the index in {folder} is held by {who}, and Qdrant Edge serves one process at a time: wait for it to end, "
        f"or set CITELOOM_QDRANT_URL to a Qdrant server, which lifts the limit"
    )
