"""Loading a month: send what is new or changed, take out what is stale, and count what is there.

Not here: the stage and its receipt (`stages`), and what a point holds (`points`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice

from pipeline.index.passage_index import BATCH, PassageIndex, Point


@dataclass(frozen=True, slots=True)
class Load:
    """What a load did. expected: passage id to digest of every point that the month asks for."""

    expected: Mapping[str, str]
    sent: int
    removed: int


@dataclass(frozen=True, slots=True)
class Audit:
    """What a month holds after a load, by ids. missing: asked for and not there, or there with other content."""

    present: int
    missing: tuple[str, ...]
    stale: tuple[str, ...]


def load_month(index: PassageIndex, month: str, points: Iterable[Point]) -> Load:
    """Make the month's points in the index those given, and touch no other.

    Points that are there with the same digest are not sent again, so a load that was killed goes on where it was.
    """
    there = index.ids_of_month(month)
    expected: dict[str, str] = {}
    sent = 0
    pending = _changed(points, there, expected)
    while batch := list(islice(pending, BATCH)):
        index.upsert(batch)
        sent += len(batch)
    stale = sorted(there.keys() - expected.keys())
    index.delete(stale)
    # Also where nothing was sent: the run before may have been killed while it settled. It takes milliseconds then.
    index.settle()
    return Load(expected, sent, len(stale))


def _changed(points: Iterable[Point], there: Mapping[str, str], expected: dict[str, str]) -> Iterable[Point]:
    for point in points:
        digest = point.payload["digest"]
        expected[point.passage_id] = digest
        if there.get(point.passage_id) != digest:
            yield point


def audit_month(index: PassageIndex, month: str, expected: Mapping[str, str]) -> Audit:
    """Compare a month's points with what is expected, id by id."""
    there = index.ids_of_month(month)
    missing = sorted(passage_id for passage_id, digest in expected.items() if there.get(passage_id) != digest)
    return Audit(len(expected) - len(missing), tuple(missing), tuple(sorted(there.keys() - expected.keys())))


def digest_of(expected: Mapping[str, str]) -> str:
    """SHA-256 over the sorted ids and digests of a month."""
    return hashlib.sha256("\n".join(f"{key} {expected[key]}" for key in sorted(expected)).encode()).hexdigest()
