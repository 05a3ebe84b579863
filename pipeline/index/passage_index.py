"""The base class of a collection, the protocol of an alias's collections, and their values, for
both engines.

A collection's `Layout` never changes: each layout has a collection of its own, named after it, and
an alias names the one that searches use.
"""

from __future__ import annotations

import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from pipeline.corpus.passages.text import FORM
from pipeline.embedding.lexical import MEAN_LENGTH
from pipeline.embedding.lexical import VERSION as LEXICAL_VERSION
from pipeline.errors import MissingInput, PermanentFailure
from pipeline.index.batch import PointBatch, check_points

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipeline.embedding.embedder import SparseVector

# Compression of dense vectors: TurboQuant's 4 and 2 bits for each number, 8-bit integers, or none.
# Earlier versions also had "binary".
Quantization = Literal["turbo4", "turbo2", "int8", "none"]
# Names of the vectors in a collection: a model's dense and, of BGE-M3, its sparse vectors; stemmed
# words.
VectorName = Literal["dense", "lexical", "sparse"]
DENSE: VectorName = "dense"
LEXICAL: VectorName = "lexical"
SPARSE: VectorName = "sparse"


@dataclass(frozen=True, slots=True)
class Layout:
    """A collection's identity.

    model: the embedding model. dimensions: of the dense vector. sparse: whether points have the
    model's sparse vectors too. form: the headings above a passage in the embedded text, of which
    earlier versions had others. mean_length: words of an average passage, for lexical weights.
    lexical: version of these weights.
    """

    model: str
    dimensions: int
    sparse: bool = False
    form: str = FORM
    quantization: Quantization = "int8"
    mean_length: int = MEAN_LENGTH
    lexical: int = LEXICAL_VERSION

    def collection(self, alias: str) -> str:
        """The name of the collection of this layout, such as citeloom-all-minilm-l6-v2-1f0c2a9b."""
        # `colbert` is of earlier versions, whose collections keep their names.
        content = json.dumps(asdict(self) | {"colbert": False}, sort_keys=True).encode()
        model = re.sub(r"[^a-z0-9.]+", "-", self.model.lower()).strip("-.")[:40]
        return f"{alias}-{model}-{hashlib.sha256(content).hexdigest()[:8]}"

    @property
    def vector_names(self) -> list[VectorName]:
        """The vectors of a point."""
        return [DENSE, LEXICAL, *([SPARSE] if self.sparse else [])]

    def describe(self) -> str:
        """For a message."""
        return (
            f"{self.model}, {self.dimensions} dimensions, {self.form} embedded, sparse vectors"
            f" {'on' if self.sparse else 'off'}, quantization {self.quantization}, lexical weights"
            f" {self.lexical} for {self.mean_length} words"
        )

    @staticmethod
    def from_mapping(values: Mapping[str, Any]) -> Layout:
        """The layout that `dataclasses.asdict` wrote. Raises KeyError for what is missing."""
        return Layout(**{field.name: values[field.name] for field in fields(Layout)})


# Length of the candidate list that HNSW keeps while it walks the graph. Of 200,000 drawn points of
# 1,024 numbers in int8 on a server, 128 found 97.3 % of the best ten in 1.7 ms of processor, 200
# 98.8 % in 2.7, 256 99.3 % in 2.9, and 384 99.4 % in 4.1. Where each segment compared twice 60 or
# 100 candidates uncompressed, these were 97.3 and 98.8 % in 4 to 5 ms.
HNSW_EF = 256

# Values of a field that are listed at most; arXiv has some 180 categories and 430 months.
MOST_VALUES = 1_000
# Queries in one request, whose hits and payloads are in memory at once.
MOST_QUERIES = 64

# Every field that a search or an audit restricts. category_keys has the categories and their
# archives (cs for cs.CL); authors has whole names and family names, venue the words of the journal
# reference and of the authors' comment; month_number is YYYYMM, since keywords have no order to ask
# a range of.
KEYWORDS = ("arxiv_id", "month", "category_keys", "kind", "subset", "grade", "authors", "venue")
MONTH_NUMBER = "month_number"
INTEGERS = (MONTH_NUMBER, "year")

# A passage's UUID; a foreign point may bear a number.
PointId = str | int


class ScoredPoint(NamedTuple):
    """A point in a ranking. Scores of different queries are not comparable, except the cosine of
    dense vectors.
    """

    passage_id: str
    score: float
    payload: Mapping[str, Any]
    cosine: float | None = None


@dataclass(frozen=True, slots=True)
class Condition:
    """A field must hold one of `values`, or lie in `low..high` (both included, None for no bound);
    or must not.
    """

    field: str
    values: tuple[str, ...] = ()
    low: int | None = None
    high: int | None = None
    negated: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class QueryVectors:
    """A question's vectors.

    dense: float32 of shape (dimensions,). lexical: of its stemmed words. sparse: None where the
    model makes none.
    """

    dense: NDArray[np.float32]
    lexical: SparseVector
    sparse: SparseVector | None = None

    def terms(self, by: VectorName) -> SparseVector:
        """The lexical or the sparse vector. Raises ValueError where there is none."""
        vector = self.lexical if by == LEXICAL else self.sparse
        if vector is None:
            raise ValueError(f"the question has no {by} vector")
        return vector


@dataclass(frozen=True, slots=True)
class Request:
    """The `limit` passages that score best by one of the vectors; by dense ones, as far as
    compressed vectors tell.

    where: conditions that must all hold; those on months also limit document frequencies. passages:
    only these, by their ids, each compared uncompressed; None for all. exact: compare with every
    point, uncompressed, instead of walking the graph.
    """

    limit: int
    by: VectorName = "dense"
    where: tuple[Condition, ...] = ()
    passages: tuple[str, ...] | None = None
    exact: bool = False
    fields: tuple[str, ...] = ()
    """Fields of the payload that are wanted; `PassageIndex.payloads` gives whole ones."""

    @property
    def months(self) -> tuple[Condition, ...]:
        """The conditions on months."""
        return tuple(condition for condition in self.where if condition.field == MONTH_NUMBER)


def of_month(month: str) -> list[Condition]:
    """The conditions of a month's points."""
    return [Condition("month", (month,))]


def month_number(month: str) -> int:
    """2024-03 as 202403."""
    return int(month.replace("-", ""))


class PassageIndex(ABC):
    """One collection; thread-safe. Every call may raise TransientFailure (no answer) or
    SettingError (a wrong key).
    """

    name: str
    """The collection's own name."""
    place: str
    """Folder or server of the collection, for messages."""
    in_flight: int
    """How many threads may call `upsert` at once."""
    page: int
    """Points on one page of a listing, and ids in one deletion."""
    most_exact = MOST_QUERIES
    """Queries in one request that compare with every point."""

    @abstractmethod
    def layout(self) -> Layout | None:
        """The layout of the collection; None if there is no collection. Raises PermanentFailure for
        a collection of this name that citeloom did not make.
        """

    def create(self, layout: Layout) -> None:
        """Create the collection unless it exists, and the payload indexes that it lacks. Raises
        PermanentFailure if it has another layout.
        """
        if self.layout() is None:
            self._create(layout)
        existing = self.layout()
        if existing is not None and existing != layout:
            raise PermanentFailure(
                f"the collection {self.name} is made for {existing.describe()}, and not for"
                f" {layout.describe()}: delete it"
            )
        self._create_payload_indexes()

    def upsert(self, points: PointBatch) -> None:
        """Insert points, replacing those of the same id; returns when they survive a kill of the
        process that holds the collection (not yet a loss of power). Transient errors are retried
        for about two minutes. Raises PermanentFailure for points that `check_points` refuses; then
        none is inserted.
        """
        check_points(points)
        for part in points.split():
            self._upsert(part)

    def delete(self, ids: Sequence[PointId]) -> None:
        """Delete points; unknown ids are ignored."""
        for start in range(0, len(ids), self.page):
            self._delete(list(ids[start : start + self.page]))

    def contents(self, month: str) -> Iterator[tuple[PointId, str | None]]:
        """Id and digest of every point of a month; None for a payload without digest. Empty without
        a collection.
        """
        for record in self._scroll(of_month(month), ["digest"]):
            digest = (record.payload or {}).get("digest")
            yield _id_of(record), None if digest is None else str(digest)

    def outside(self, months: Sequence[str]) -> Iterator[PointId]:
        """Ids of points of none of these months. Empty without a collection."""
        others = [Condition("month", tuple(months), negated=True)] if months else []
        return map(_id_of, self._scroll(others, []))

    @abstractmethod
    def count(self, month: str | None = None, *, wait: bool = True) -> int:
        """Exact number of points of a month or of all; 0 without a collection. Without `wait`,
        raises TransientFailure at once if another process holds the index or the server does not
        answer.
        """

    @abstractmethod
    def month_counts(self, *, wait: bool = True) -> dict[str, int]:
        """Exact number of points by month, of at most MOST_VALUES months; none without a
        collection. wait: as for `count`.
        """

    def points_version(self) -> str | None:
        """A value that differs once points were added or removed; None where only the index itself
        tells.
        """
        return None

    @abstractmethod
    def values(self, field: str) -> list[str]:
        """Sorted values of a field of KEYWORDS, at most MOST_VALUES; none without a collection."""

    def search(self, searches: Sequence[tuple[QueryVectors, Request]]) -> list[list[ScoredPoint]]:
        """The passages of each search, best first; all in one batch. Which of the passages that tie
        with the last are among them is not defined. Raises PermanentFailure if the collection has
        no vectors of the requested name.
        """
        layout = self._needed_layout()
        for _, request in searches:
            if request.by not in layout.vector_names:
                raise PermanentFailure(
                    f"the collection {self.name} has no {request.by} vectors to rank by"
                    f" ({layout.describe()}): search without them, or set"
                    f" CITELOOM_EMBEDDER=bge-m3 and run citeloom reindex"
                )
        rankings: list[list[ScoredPoint]] = []
        has_exact = any(request.exact for _, request in searches)
        most = self.most_exact if has_exact else MOST_QUERIES
        for start in range(0, len(searches), most):
            for points in self._query(searches[start : start + most]):
                ranking = [
                    ScoredPoint(str(point.id), point.score, point.payload or {}) for point in points
                ]
                rankings.append(ranking)
        return rankings

    def payloads(self, passages: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
        """Passage id to payload; without the ids that the collection does not hold."""
        return {str(record.id): record.payload or {} for record in self._retrieve(list(passages))}

    def unindexed_fields(self) -> tuple[str, ...]:
        """Fields of filters whose payload index the collection lacks; none without a collection."""
        if self.layout() is None:
            return ()
        indexed = self._indexed_fields()
        return tuple(field for field in (*KEYWORDS, *INTEGERS) if field not in indexed)

    @abstractmethod
    def defer_indexing(self, new_points: int | None = None) -> None:
        """Build no graph during a large load; points can be searched, by comparing with each.

        new_points: number of points to come; nothing changes for a small part of the collection.
        None: of a large load.
        """

    @abstractmethod
    def build_graph(self, *, wait: bool = False) -> None:
        """Make a load durable, and build the graph that is due; with `wait`, return when it is
        built.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the connection, or release the folder's lock."""

    def _needed_layout(self) -> Layout:
        layout = self.layout()
        if layout is None:
            raise MissingInput(
                f"there is no collection {self.name} in {self.place}: "
                "run citeloom run --months all --until index"
            )
        return layout

    def _scroll(self, where: Sequence[Condition], fields: list[str]) -> Iterator[Any]:
        """Records of all pages; none without a collection."""
        if self.layout() is None:
            return
        offset = None
        while True:
            records, offset = self._page(where, fields, offset)
            yield from records
            if offset is None:
                return

    # Implemented by each engine. Records have `id` and `payload`, points also `score`.

    @abstractmethod
    def _create(self, layout: Layout) -> None: ...

    @abstractmethod
    def _create_payload_indexes(self) -> None: ...

    @abstractmethod
    def _indexed_fields(self) -> Mapping[str, Any]: ...

    @abstractmethod
    def _upsert(self, points: PointBatch) -> None: ...

    @abstractmethod
    def _delete(self, ids: list[Any]) -> None: ...

    @abstractmethod
    def _page(
        self, where: Sequence[Condition], fields: list[str], offset: Any
    ) -> tuple[Sequence[Any], Any]:
        """Records of a page, and the offset of the next one; None after the last."""

    @abstractmethod
    def _query(self, searches: Sequence[tuple[QueryVectors, Request]]) -> Sequence[Sequence[Any]]:
        """The points of each search."""

    @abstractmethod
    def _retrieve(self, ids: list[str]) -> Sequence[Any]: ...


class Collections(Protocol):
    """The collections of one alias. Every call may raise TransientFailure, SettingError or
    PermanentFailure.
    """

    held_back: str | None
    """Name of a collection that is not made live before it is complete, in this process."""

    @property
    def engine(self) -> Literal["edge", "server"]: ...

    @property
    def alias(self) -> str:
        """The name that searches use."""
        ...

    def live(self) -> str | None:
        """Name of the collection that searches use; None before the first."""
        ...

    def names(self) -> list[str]:
        """Names of all collections of this alias."""
        ...

    def collection(self, name: str) -> PassageIndex:
        """A collection, the same object for every call; nothing is created or requested before it
        is used.
        """
        ...

    def make_live(self, name: str) -> None:
        """Let searches use this collection, in one step."""
        ...

    def drop(self, name: str) -> None:
        """Delete a collection. Raises SettingError for the live one."""
        ...

    def close(self) -> None:
        """Close every open collection."""
        ...


def foreign_collection(name: str, place: str) -> str:
    """The message for a collection that citeloom did not make."""
    return (
        f"{place} holds a collection {name} that citeloom did not make: set"
        " CITELOOM_QDRANT_COLLECTION to another name"
    )


def _id_of(record: Any) -> PointId:
    """A UUID as text; a number, which only a foreign point has, as it is."""
    return record.id if isinstance(record.id, int) else str(record.id)
