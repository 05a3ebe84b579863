"""Loading a month: send what is new or changed, take out what is stale, and count what is there."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pipeline.engine import telemetry
from pipeline.errors import CiteloomError, TransientFailure
from pipeline.index.batch import PointBatch

if TYPE_CHECKING:
    from pipeline.index.passage_index import PassageIndex, PointId

# A collection that grows by more than this share is indexed once at the end: building its graph again and again
# meanwhile costs several times as much.
BULK = 0.25


@dataclass(frozen=True, slots=True)
class Load:
    """What a load did. expected: passage id to digest of every point that the month asks for."""

    expected: Mapping[str, str]
    sent: int
    removed: int


class NotLoaded(TransientFailure):
    """Some points of a month could not be loaded; `ids` are theirs, and the others are in."""

    def __init__(self, ids: Sequence[str], reason: str) -> None:
        super().__init__(f"{len(ids)} points were not taken by the index ({', '.join(ids[:5])}): {reason}")
        self.ids = ids


def load_month(
    index: PassageIndex,
    month: str,
    points: Iterable[PointBatch],
    *,
    expecting: int | None = None,
    settle: bool = True,
    told: Callable[[int], None] = lambda done: None,
) -> Load:
    """Make the month's points in the index those given, and touch no other.

    Points that are there with the same digest are not sent again, so a load that was killed goes on where it was.
    expecting: how many points the month has, if known. settle: whether the index builds its graph afterwards; not where
    more months follow before anybody searches, and whoever loads them sees to it. told: is given the number of points
    seen so far. Raises NotLoaded with the list of what the index did not take, after everything else was loaded.
    """
    there = dict(index.contents(month))
    bulk = settle and (expecting or 0) - len(there) > BULK * index.count()
    if bulk:
        index.defer_indexing()
    seen = _Seen(there, told)
    try:
        sent = _send(index, seen.changed(points))
        stale = sorted(seen.left, key=str)
        index.delete(stale)
    except BaseException:
        with suppress(CiteloomError):  # what failed first is what the user must hear of
            if settle:
                index.settle()
        raise
    if settle:  # also where nothing was sent: the run before may have been killed before this, which takes little then
        index.settle()
    return Load(seen.expected, sent, len(stale))


@dataclass(slots=True)
class _Seen:
    """The points of a month as they pass by.

    left: what the index holds of the month, less what has passed by. So a month of a million points, at 230 bytes
    each, is in memory once and not twice.
    """

    left: dict[PointId, str | None]
    told: Callable[[int], None]
    expected: dict[str, str] = field(default_factory=dict)

    def changed(self, points: Iterable[PointBatch]) -> Iterator[PointBatch]:
        """Those that the index lacks or holds with another digest, in parts of the size of a request."""
        import numpy as np

        for batch in points:
            digests = [payload["digest"] for payload in batch.payloads]
            self.expected |= zip(batch.ids, digests, strict=True)
            pairs = enumerate(zip(batch.ids, digests, strict=True))
            wanted = [number for number, (identifier, digest) in pairs if self.left.pop(identifier, None) != digest]
            if wanted:
                yield from batch.take(np.array(wanted, np.int64)).split()
            self.told(len(self.expected))


def _send(index: PassageIndex, batches: Iterator[PointBatch]) -> int:
    """Send all batches, several at a time; how many points went in.

    A batch that fails for a time does not stop the others, unless nothing goes in any more: after as many failures in
    a row as calls are under way, the rest is counted as not loaded and not tried.
    """
    sent, in_a_row, reason = 0, 0, ""
    lost: list[str] = []
    with ThreadPoolExecutor(index.in_flight, "load") as pool:
        for batch, error in _in_flight(pool, index, batches):
            if error is None:
                sent, in_a_row = sent + len(batch), 0
                continue
            lost += batch.ids
            reason, in_a_row = str(error), in_a_row + 1
            if in_a_row >= index.in_flight:
                lost += [identifier for rest in batches for identifier in rest.ids]
    if lost:
        raise NotLoaded(lost, reason)
    return sent


def _in_flight(
    pool: ThreadPoolExecutor, index: PassageIndex, batches: Iterator[PointBatch]
) -> Iterator[tuple[PointBatch, TransientFailure | None]]:
    """Each batch when it is in, or what hindered it. Other failures than those that may pass are raised."""
    under_way: dict[Future[None], PointBatch] = {}
    while True:
        while len(under_way) < index.in_flight and (batch := next(batches, None)) is not None:
            send = telemetry.bind_span("index load batch", {"citeloom.points": len(batch)}, index.upsert)
            under_way[pool.submit(send, batch)] = batch
        if not under_way:
            return
        for future in wait(under_way, return_when=FIRST_COMPLETED).done:
            done = under_way.pop(future)
            error = future.exception()
            if error is not None and not isinstance(error, TransientFailure):
                raise error
            yield done, error


def digest_of(expected: Mapping[str, str]) -> str:
    """SHA-256 over the sorted ids and digests of a month, with a line break between two."""
    found, before = hashlib.sha256(), ""
    for key in sorted(expected):
        found.update(f"{before}{key} {expected[key]}".encode())
        before = "\n"
    return found.hexdigest()
