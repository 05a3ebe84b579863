"""The audit of a month: its points in the index against those that its tables ask for, id by id."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

if TYPE_CHECKING:
    from pipeline.index.passage_index import PassageIndex, PointId

# The kinds of what can be wrong, as fields of MonthAudit.
KINDS = ("missing", "stale", "duplicate", "foreign")


@dataclass(frozen=True, slots=True)
class MonthAudit:
    """A month's points in the index against those that its tables ask for.

    expected: how many the tables ask for. present: of these, found with the content they should have. missing: not
    found at all. stale: found with other content than the tables have now, or of passages that they have no more.
    duplicate: a passage's content under another id, or an id that was listed twice. foreign: not made by citeloom.
    Whatever is not missing is in the order of the ids.
    """

    month: str
    collection: str
    expected: int
    present: int
    missing: tuple[str, ...] = ()
    stale: tuple[PointId, ...] = ()
    duplicate: tuple[PointId, ...] = ()
    foreign: tuple[PointId, ...] = ()

    @property
    def surplus(self) -> tuple[PointId, ...]:
        """Everything that is there and should not be, or not so."""
        return (*self.stale, *self.duplicate, *self.foreign)

    @property
    def clean(self) -> bool:
        """Whether the index holds what the tables ask for and nothing else."""
        return not self.missing and not self.surplus

    def describe(self) -> str:
        """For a message."""
        counts = ", ".join(f"{len(getattr(self, kind))} {kind}" for kind in KINDS)
        return f"of {self.expected} points {self.present} are present; {counts}"


def audit_month(index: PassageIndex, month: str, expected: Mapping[str, str]) -> MonthAudit:
    """Compare a month's points with what is expected: passage id to digest.

    A point counts by its id and digest; vectors are not read, since a digest covers the text that they were made of.
    """
    seen: set[PointId] = set()
    twice: list[PointId] = []
    odd: list[tuple[PointId, str | None]] = []
    for identifier, digest in index.contents(month):
        if identifier in seen:
            twice.append(identifier)
        elif digest is None or expected.get(str(identifier)) != digest:
            odd.append((identifier, digest))
        seen.add(identifier)
    missing = sorted(expected.keys() - seen)
    wrong = _kinds_of(odd, expected)
    changed = sum(identifier in expected for identifier, _ in odd)
    return MonthAudit(
        month,
        index.name,
        len(expected),
        len(expected) - len(missing) - changed,
        tuple(missing),
        stale=_in_order(wrong["stale"]),
        duplicate=_in_order([*wrong["duplicate"], *twice]),
        foreign=_in_order(wrong["foreign"]),
    )


def _kinds_of(odd: Iterable[tuple[PointId, str | None]], expected: Mapping[str, str]) -> dict[str, list[PointId]]:
    """What is wrong with points that are not as expected."""
    kinds: dict[str, list[PointId]] = {"stale": [], "duplicate": [], "foreign": []}
    contents = frozenset(expected.values()) if odd else frozenset()
    for identifier, digest in odd:
        if identifier in expected:
            kinds["stale"].append(identifier)
        elif digest in contents:
            kinds["duplicate"].append(identifier)
        else:
            kinds["stale" if digest is not None and _is_passage(identifier) else "foreign"].append(identifier)
    return kinds


def _is_passage(identifier: PointId) -> bool:
    """Whether an id is of the kind that passages have: a UUID made of a name."""
    return isinstance(identifier, str) and UUID(identifier).version == 5


def _in_order(ids: Iterable[PointId]) -> tuple[PointId, ...]:
    return tuple(sorted(ids, key=str))
