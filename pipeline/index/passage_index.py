"""The protocol of an index of passages, and the values that go in and come out.

Not here: either engine (`edge`, `server`), and which of them the settings choose (`opening`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

# Names of the vectors in a collection.
DENSE, SPARSE = "dense", "sparse"

# Reciprocal rank fusion's constant (Cormack, Clarke and Büttcher 2009). Qdrant's default of 2 lets the first rank of
# one list outweigh two second ranks.
RRF_K = 60

# Points sent, deleted or read at once: 256 points of 1,024 dimensions and 150 sparse weights are 1.5 MB, far below
# the 32 MB that a server takes.
BATCH = 256

# Values of a field that are listed at most; arXiv has some 180 categories.
MOST_VALUES = 1_000

# Every field that a search or an audit restricts. Archives are those of the categories (cs for cs.CL);
# month_number is YYYYMM, since keywords have no order to ask a range of.
KEYWORDS = ("arxiv_id", "month", "categories", "archives", "kind", "model", "grade")
INTEGERS = ("month_number",)


@dataclass(frozen=True, slots=True)
class Layout:
    """What a collection is made for: the dense vector's length, and whether sparse scores are multiplied by IDF."""

    dimensions: int
    sparse_idf: bool


@dataclass(frozen=True, slots=True)
class Point:
    """One passage as it is loaded. The vectors are plain lists, as both engines take them."""

    passage_id: str
    dense: list[float]
    sparse_ids: list[int]
    sparse_weights: list[float]
    payload: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Found:
    """One passage that a search found; score is that of reciprocal rank fusion, and says nothing across queries."""

    passage_id: str
    score: float
    payload: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Condition:
    """A field must hold one of `values`, or lie in `low..high` (both included, None for no bound)."""

    field: str
    values: tuple[str, ...] = ()
    low: int | None = None
    high: int | None = None


@dataclass(frozen=True, slots=True)
class Restriction:
    """What a search is restricted to; None for no restriction. Months are `YYYY-MM`, both included."""

    model: str | None = None
    category: str | None = None
    first_month: str | None = None
    last_month: str | None = None
    kinds: tuple[str, ...] = ()
    grades: tuple[str, ...] = ()

    def conditions(self) -> list[Condition]:
        """The restriction as conditions that must all hold."""
        found = []
        if self.model is not None:
            found.append(Condition("model", (self.model,)))
        if self.category is not None:
            found.append(Condition("categories" if "." in self.category else "archives", (self.category,)))
        if self.first_month is not None or self.last_month is not None:
            found.append(Condition("month_number", low=_number(self.first_month), high=_number(self.last_month)))
        if self.kinds:
            found.append(Condition("kind", self.kinds))
        if self.grades:
            found.append(Condition("grade", self.grades))
        return found


def of_month(month: str) -> list[Condition]:
    """The conditions of a month's points."""
    return [Condition("month", (month,))]


def month_number(month: str) -> int:
    """2024-03 as 202403."""
    return int(month.replace("-", ""))


def _number(month: str | None) -> int | None:
    return None if month is None else month_number(month)


def batched(items: Sequence[Any], size: int = BATCH) -> Iterator[Sequence[Any]]:
    """The items, `size` at a time."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


class PassageIndex(Protocol):
    """A collection of passages. Every call may raise TransientFailure (no answer), SettingError (a wrong key)."""

    @property
    def engine(self) -> Literal["edge", "server"]:
        """Which engine it is."""
        ...

    def layout(self) -> Layout | None:
        """What the collection is made for; None where there is no collection. Raises PermanentFailure where a
        collection of the name is there and is none of citeloom's."""
        ...

    def ensure_collection(self, layout: Layout) -> None:
        """Make the collection where it is absent, its payload indexes too. Raises PermanentFailure where it is
        there with another layout."""
        ...

    def upsert(self, points: Sequence[Point]) -> None:
        """Put points in, over those of the same id; returns when they are on disk."""
        ...

    def delete(self, passage_ids: Sequence[str]) -> None:
        """Take points out; ids that are not there do not matter."""
        ...

    def ids_of_month(self, month: str) -> dict[str, str]:
        """Passage id to content digest (`digest` of the payload) of every point of a month."""
        ...

    def count(self, month: str, *, wait: bool = True) -> int:
        """Points of a month, counted exactly; 0 where there is no collection. Without `wait`, another process that
        holds the index is reported at once."""
        ...

    def models(self) -> list[str]:
        """Models whose vectors the collection holds, by name."""
        ...

    def values(self, field: str) -> list[str]:
        """Values that a field of KEYWORDS has, in order, at most MOST_VALUES; none where there is no collection."""
        ...

    def search(
        self,
        dense: Sequence[float],
        sparse_ids: Sequence[int],
        sparse_weights: Sequence[float],
        *,
        limit: int,
        restriction: Restriction,
    ) -> list[Found]:
        """The best `limit` points by dense and sparse score, fused by rank; best first, ties by id."""
        ...

    def settle(self) -> None:
        """Called when a load is done: build what searches profit from."""
        ...

    def close(self) -> None:
        """Let go of the connection, or of the folder's lock."""
        ...


def collection_differs(name: str, found: Layout, wanted: Layout) -> str:
    """The message where a collection has another layout than the vectors need."""
    return (
        f"the collection {name} holds {_describe(found)}, the vectors are {_describe(wanted)}: "
        f"set CITELOOM_QDRANT_COLLECTION to another name, or delete the collection and run again"
    )


def _describe(layout: Layout) -> str:
    return f"{layout.dimensions} dimensions with sparse IDF {'on' if layout.sparse_idf else 'off'}"


def best_first(found: list[Found], limit: int) -> list[Found]:
    """Sorted by score, ties by id: neither engine promises an order within a tie."""
    return sorted(found, key=lambda hit: (-hit.score, hit.passage_id))[:limit]


def candidates(limit: int) -> int:
    """How many candidates each of dense and sparse search gives to the fusion: ranks beyond four times the limit
    rarely reach the top of a fused list, and a short list still needs enough to overlap."""
    return max(4 * limit, 50)
