"""Load a month into the index, and compare the month's points in the index with its tables, id by
id.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import UUID

from pipeline.errors import CiteloomError, TransientFailure
from pipeline.index.batch import PointBatch

if TYPE_CHECKING:
    from pipeline.index.passage_index import PassageIndex, PointId

# What can be wrong with points and payload indexes, as fields of MonthAudit.
KINDS = ("missing", "stale", "duplicate", "foreign", "unindexed")


@dataclass(frozen=True, slots=True)
class Load:
    """Result of a load. expected: passage id to digest of every point that the month's tables ask
    for.
    """

    expected: Mapping[str, str]
    sent: int
    removed: int


@dataclass(frozen=True, slots=True)
class MonthAudit:
    """Comparison of a month's points in the index with its tables.

    expected: number of points that the tables ask for. present: those of them that the index has
    with the expected digest. missing: those that it does not have. stale: points with another
    digest than the tables have now, or of passages that the tables have no more. duplicate: a
    passage's content under another id, or an id listed twice. foreign: points that citeloom did not
    make. Each is sorted by id. unindexed: fields without the payload index that filters need.
    """

    month: str
    collection: str
    expected: int
    present: int
    missing: tuple[str, ...] = ()
    stale: tuple[PointId, ...] = ()
    duplicate: tuple[PointId, ...] = ()
    foreign: tuple[PointId, ...] = ()
    unindexed: tuple[str, ...] = ()

    @property
    def surplus(self) -> tuple[PointId, ...]:
        """Points that should not be in the index, or not with this content."""
        return (*self.stale, *self.duplicate, *self.foreign)

    @property
    def clean(self) -> bool:
        """Whether the index holds what the tables ask for and nothing else."""
        return not any(getattr(self, kind) for kind in KINDS)

    def describe(self) -> str:
        """For a message."""
        counts = ", ".join(f"{len(getattr(self, kind))} {kind}" for kind in KINDS)
        return f"of {self.expected} points {self.present} are present; {counts}"


def load_month(
    index: PassageIndex,
    month: str,
    points: Iterable[PointBatch],
    *,
    expected_rows: int = 0,
    build_graph: bool = True,
    on_progress: Callable[[int], None] = lambda count: None,
) -> Load:
    """Make the index hold exactly these points of the month; points of other months are not
    touched.

    Points that the index has with the same digest are not sent, so a killed load continues where it
    stopped.
    expected_rows: number of the month's points, if known. build_graph: False if more months follow
    before the first search; the caller then calls `PassageIndex.build_graph` itself. on_progress:
    receives the number of points compared so far. Raises at the first points that the index does
    not accept; a TransientFailure names the month.
    """
    changes = _Changes(dict(index.contents(month)))
    if build_graph:
        index.defer_indexing(expected_rows - len(changes.unmatched))
    try:
        sent = _send(index, changes.find(points, on_progress))
        stale = sorted(changes.unmatched, key=str)
        index.delete(stale)
    except BaseException as error:
        if build_graph:
            with suppress(CiteloomError):  # the first failure is the one to report
                index.build_graph()
        if isinstance(error, TransientFailure):
            raise TransientFailure(
                f"{month} is not loaded completely into {index.name}: {error}. The next run sends"
                " what is missing"
            ) from error
        raise
    # Even if nothing was sent: an earlier run may have been killed before this call, which is cheap
    if build_graph:
        index.build_graph()
    return Load(changes.expected, sent, len(stale))


@dataclass(slots=True)
class _Changes:
    """Finds the points that differ from the index, in one pass.

    unmatched: id to digest of the month's points in the index, less those that have passed; what
    remains is stale. So the ids of a month of a million points, 230 bytes each, are in memory once
    and not twice.
    """

    unmatched: dict[PointId, str | None]
    expected: dict[str, str] = field(default_factory=dict)

    def find(
        self, points: Iterable[PointBatch], on_progress: Callable[[int], None]
    ) -> Iterator[PointBatch]:
        """Points that the index lacks or has with another digest, in batches of the size of a
        request.
        """
        import numpy as np

        for batch in points:
            digests = {
                identifier: payload["digest"]
                for identifier, payload in zip(batch.ids, batch.payloads, strict=True)
            }
            self.expected |= digests
            changed = [
                number
                for number, identifier in enumerate(batch.ids)
                if self.unmatched.pop(identifier, None) != digests[identifier]
            ]
            if changed:
                yield from batch.take(np.array(changed, np.int64)).split()
            on_progress(len(self.expected))


def _send(index: PassageIndex, batches: Iterator[PointBatch]) -> int:
    """Send all batches, several in parallel; returns the number of points.

    Raises the first error, a transient one after two minutes of retries; batches in flight are
    finished.
    """
    sent = 0
    running: deque[Future[None]] = deque()
    with ThreadPoolExecutor(index.in_flight, "load") as pool:
        for batch in batches:
            if len(running) == index.in_flight:
                running.popleft().result()
            running.append(pool.submit(index.upsert, batch))
            sent += len(batch)
        for future in running:
            future.result()
    return sent


def digest_of(expected: Mapping[str, str]) -> str:
    """SHA-256 over the sorted lines "id digest" of a month, joined by line breaks."""
    digest, separator = hashlib.sha256(), ""
    for key in sorted(expected):
        digest.update(f"{separator}{key} {expected[key]}".encode())
        separator = "\n"
    return digest.hexdigest()


def audit_month(index: PassageIndex, month: str, expected: Mapping[str, str]) -> MonthAudit:
    """Compare a month's points with the expected ones: passage id to digest.

    Only ids and digests are compared: a digest covers the text that the vectors were made from.
    """
    listed: set[PointId] = set()
    listed_twice: list[PointId] = []
    unexpected: list[tuple[PointId, str | None]] = []
    for identifier, digest in index.contents(month):
        if identifier in listed:
            listed_twice.append(identifier)
        elif digest is None or expected.get(str(identifier)) != digest:
            unexpected.append((identifier, digest))
        listed.add(identifier)
    missing = sorted(expected.keys() - listed)
    kinds = _classify(unexpected, expected)
    changed = sum(identifier in expected for identifier, _ in unexpected)
    return MonthAudit(
        month,
        index.name,
        len(expected),
        len(expected) - len(missing) - changed,
        tuple(missing),
        stale=_sorted_ids(kinds["stale"]),
        duplicate=_sorted_ids([*kinds["duplicate"], *listed_twice]),
        foreign=_sorted_ids(kinds["foreign"]),
        unindexed=index.unindexed_fields(),
    )


def _classify(
    unexpected: Sequence[tuple[PointId, str | None]], expected: Mapping[str, str]
) -> dict[str, list[PointId]]:
    """Ids of unexpected points, by kind of fault."""
    kinds: dict[str, list[PointId]] = {"stale": [], "duplicate": [], "foreign": []}
    expected_digests = frozenset(expected.values()) if unexpected else frozenset()
    for identifier, digest in unexpected:
        if identifier in expected:
            kinds["stale"].append(identifier)
        elif digest in expected_digests:
            kinds["duplicate"].append(identifier)
        elif digest is not None and _is_passage_id(identifier):
            kinds["stale"].append(identifier)
        else:
            kinds["foreign"].append(identifier)
    return kinds


def _is_passage_id(identifier: PointId) -> bool:
    """Whether an id has the form of a passage's: a UUID of version 5."""
    return isinstance(identifier, str) and UUID(identifier).version == 5


def _sorted_ids(ids: Iterable[PointId]) -> tuple[PointId, ...]:
    return tuple(sorted(ids, key=str))
