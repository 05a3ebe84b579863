"""The protocols of the index, and the values that go in and come out.

A `PassageIndex` is one collection of passages; `Collections` are those of one alias, of which one is live.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from pipeline.index.layout import Layout, Quantization

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipeline.embedding.sparse import SparseVector
    from pipeline.index.batch import PointBatch

# Names of the vectors in a collection: a model's dense and, of BGE-M3, its sparse and ColBERT vectors; stemmed words.
VectorName = Literal["dense", "lexical", "sparse", "colbert"]
DENSE: VectorName = "dense"
LEXICAL: VectorName = "lexical"
SPARSE: VectorName = "sparse"
COLBERT: VectorName = "colbert"

# Candidates that a compressed search hands to exact scoring, as a multiple of what is asked for; benchmarks/search.py
# measures the recall that this gives.
OVERSAMPLING: Mapping[Quantization, float] = {"int8": 2.0, "binary": 8.0, "none": 1.0}
# Length of the candidate list that HNSW keeps while it walks the graph. Of 100,000 points, binary found 94.7 % of the
# best ten with 4 times as many candidates and a list of 128, and 99.5 % so.
HNSW_EF: Mapping[Quantization, int] = {"int8": 128, "binary": 256, "none": 128}

# Values of a field that are listed at most; arXiv has some 180 categories and 430 months.
MOST_VALUES = 1_000

# Every field that a search or an audit restricts. Archives are those of the categories (cs for cs.CL); authors has
# whole names and family names, venue the words of the journal reference and of the authors' comment; month_number is
# YYYYMM, since keywords have no order to ask a range of.
KEYWORDS = (
    "arxiv_id", "month", "categories", "archives", "primary_category", "kind", "subset", "grade", "authors", "venue"
)  # fmt: skip
INTEGERS = ("month_number", "year")

# A passage's UUID; a foreign point may bear a number.
PointId = str | int


@dataclass(frozen=True, slots=True)
class Found:
    """One passage that a search found. A score says nothing across queries, but for the cosine of dense vectors."""

    passage_id: str
    score: float
    payload: Mapping[str, Any]
    cosine: float | None = None


@dataclass(frozen=True, slots=True)
class Condition:
    """A field must hold one of `values`, or lie in `low..high` (both included, None for no bound); or must not."""

    field: str
    values: tuple[str, ...] = ()
    low: int | None = None
    high: int | None = None
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Restriction:
    """What a search is restricted to; empty for no restriction. Months are `YYYY-MM`, both included."""

    categories: tuple[str, ...] = ()
    """Categories (cs.CL) and archives (cs), of which a paper must have one."""
    first_month: str | None = None
    last_month: str | None = None
    kinds: tuple[str, ...] = ()
    subsets: tuple[str, ...] = ()
    grades: tuple[str, ...] = ()
    authors: tuple[str, ...] = ()
    """Whole names or family names, as `points.author_keys` writes them, of which a paper must have one."""
    venue: tuple[str, ...] = ()
    """Words of a venue, all of which a paper must have."""
    first_year: int | None = None
    last_year: int | None = None
    without_papers: tuple[str, ...] = ()
    """Papers whose passages are not looked at."""

    def conditions(self) -> list[Condition]:
        """The restriction as conditions that must all hold, but for those of `any_of`."""
        found = self.months()
        named = {"kind": self.kinds, "subset": self.subsets, "grade": self.grades, "authors": self.authors}
        found += [Condition(field, values) for field, values in named.items() if values]
        found += [Condition("venue", (word,)) for word in self.venue]
        if self.first_year is not None or self.last_year is not None:
            found.append(Condition("year", low=self.first_year, high=self.last_year))
        if self.without_papers:
            found.append(Condition("arxiv_id", self.without_papers, negated=True))
        return found

    def months(self) -> list[Condition]:
        """The condition on months, which words are counted by too; none where all months may be found."""
        if self.first_month is None and self.last_month is None:
            return []
        return [Condition("month_number", low=_number(self.first_month), high=_number(self.last_month))]

    def any_of(self) -> list[Condition]:
        """Conditions of which one must hold, where there are any."""
        archives = tuple(each for each in self.categories if "." not in each)
        categories = tuple(each for each in self.categories if "." in each)
        pairs = (("archives", archives), ("categories", categories))
        return [Condition(field, values) for field, values in pairs if values]


UNRESTRICTED = Restriction()


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """A question's vectors.

    dense: float32 of shape (dimensions,). lexical: of its stemmed words. sparse: None where the model makes none.
    colbert: float32 of shape (tokens, dimensions); None unless asked for.
    """

    dense: NDArray[np.float32]
    lexical: SparseVector
    sparse: SparseVector | None = None
    colbert: NDArray[np.float32] | None = None

    def terms(self, by: VectorName) -> SparseVector:
        """The lexical or the sparse vector. Raises ValueError where there is none."""
        vector = self.lexical if by == LEXICAL else self.sparse
        if vector is None:
            raise ValueError(f"the question has no {by} vector")
        return vector


@dataclass(frozen=True, slots=True)
class Request:
    """The `limit` passages that score best by one of the vectors.

    passages: only these, by their ids, each compared; None for all. exact: compare with every point, uncompressed,
    instead of walking the graph.
    """

    limit: int
    by: VectorName = "dense"
    restriction: Restriction = UNRESTRICTED
    passages: tuple[str, ...] | None = None
    exact: bool = False


def of_month(month: str) -> list[Condition]:
    """The conditions of a month's points."""
    return [Condition("month", (month,))]


def month_number(month: str) -> int:
    """2024-03 as 202403."""
    return int(month.replace("-", ""))


def _number(month: str | None) -> int | None:
    return None if month is None else month_number(month)


class PassageIndex(Protocol):
    """One collection. Every call may raise TransientFailure (no answer), SettingError (a wrong key)."""

    @property
    def name(self) -> str:
        """The collection's own name."""
        ...

    @property
    def in_flight(self) -> int:
        """How many calls of `upsert` may be under way at once, from threads."""
        ...

    @property
    def retries(self) -> int:
        """How often anything was asked again since the connection was opened."""
        ...

    def layout(self) -> Layout | None:
        """What the collection is made for; None where there is no collection. Raises PermanentFailure where a
        collection of the name is there and is none of citeloom's."""
        ...

    def create(self, layout: Layout) -> None:
        """Make the collection where it is absent, and payload indexes that it lacks. Raises PermanentFailure where it
        is there with another layout."""
        ...

    def upsert(self, points: PointBatch) -> None:
        """Put points in, over those of the same id; returns when they outlive a kill of whoever holds the collection
        (but not yet a loss of power). What may pass is tried again, for about two minutes."""
        ...

    def delete(self, ids: Sequence[PointId]) -> None:
        """Take points out; ids that are not there do not matter."""
        ...

    def contents(self, month: str) -> Iterator[tuple[PointId, str | None]]:
        """Id and digest of every point of a month, None where the payload has no digest; nothing where there is no
        collection."""
        ...

    def outside(self, months: Sequence[str]) -> Iterator[PointId]:
        """Ids of points that are of none of these months; nothing where there is no collection."""
        ...

    def count(self, month: str | None = None, *, wait: bool = True) -> int:
        """Points of a month or of all, counted exactly; 0 where there is no collection. Without `wait`, another
        process that holds the index is reported at once."""
        ...

    def values(self, field: str) -> list[str]:
        """Values that a field of KEYWORDS has, in order, at most MOST_VALUES; none where there is no collection."""
        ...

    def search(self, searches: Sequence[tuple[Query, Request]]) -> list[list[Found]]:
        """For each search the points that it wants, best first, ties by id; all in one batch. Raises PermanentFailure
        where the collection has no vectors of the name that is asked for."""
        ...

    def defer_indexing(self) -> None:
        """Build no graph while much is loaded; points can be searched all the same, one by one."""
        ...

    def settle(self, *, wait: bool = False) -> None:
        """Called when a load is done: build what searches profit from, and with `wait`, return when it is built."""
        ...

    def close(self) -> None:
        """Let go of the connection, or of the folder's lock."""
        ...


class Collections(Protocol):
    """The collections of one alias. Every call may raise TransientFailure, SettingError or PermanentFailure."""

    @property
    def engine(self) -> Literal["edge", "server"]:
        """Which engine it is."""
        ...

    @property
    def alias(self) -> str:
        """The name that searches ask for."""
        ...

    def live(self) -> str | None:
        """Name of the collection that searches ask; None before the first."""
        ...

    def names(self) -> list[str]:
        """Names of the collections of this alias, the live one and those beside it."""
        ...

    def collection(self, name: str) -> PassageIndex:
        """A collection, the same object for every call; nothing is made or asked before it is used."""
        ...

    def make_live(self, name: str) -> None:
        """Let searches ask this collection from now on, in one step."""
        ...

    def drop(self, name: str) -> None:
        """Delete a collection. Raises SettingError for the live one."""
        ...

    def close(self) -> None:
        """Let go of everything that is open."""
        ...


def best_first(found: list[Found], limit: int) -> list[Found]:
    """The best points, ties by id: neither engine promises an order within a tie."""
    return sorted(found, key=lambda hit: (-hit.score, hit.passage_id))[:limit]


def another_layout(name: str, found: Layout, wanted: Layout) -> str:
    """The message where a collection has another layout than its name says."""
    return f"the collection {name} is made for {found.describe()}, and not for {wanted.describe()}: delete it"


def none_of_ours(name: str, place: str) -> str:
    """The message where somebody else's collection has the name."""
    return (
        f"{place} holds a collection {name} that citeloom did not make: set CITELOOM_QDRANT_COLLECTION to another name"
    )
