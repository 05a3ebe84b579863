"""Items with their scores, and the passages that a search finds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pipeline.corpus.links import abstract_url
from pipeline.corpus.nouns import Passage
from pipeline.text import clip

Item = TypeVar("Item", covariant=True)


@dataclass(frozen=True, slots=True)
class Scored(Generic[Item]):
    """An item of a ranking. score: comparable only within the ranking. fits: whether the item fits
    its query at all; true where that is unknown.
    """

    item: Item
    score: float
    fits: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedPassage(Passage):
    """A passage with what the index holds of its paper. subset: severity of the page in the dump.
    grade: quality of the page, A to D.
    """

    categories: tuple[str, ...]
    primary_category: str
    subset: str
    grade: str

    @classmethod
    def from_payload(cls, passage_id: str, payload: Mapping[str, Any], text: str) -> IndexedPassage:
        """The passage of a point. text: of the table `passages`, since the index holds none."""
        return cls(
            passage_id=passage_id,
            arxiv_id=payload["arxiv_id"],
            anchor=payload["anchor"],
            kind=payload["kind"],
            title=clip(payload["title"]),
            section_path=tuple(map(clip, payload["section_path"])),
            text=text,
            categories=tuple(payload["categories"]),
            primary_category=payload["primary_category"],
            subset=payload["subset"],
            grade=payload["grade"],
        )


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that a search returns, as JSON and Python have it.

    score: of fusion (0 to 1), of one kind of vector (dense: cosine); comparable only within one
    search. fits: whether the passage fits the query; true where that is unknown. url: the paper's
    page on arXiv. passage_url: the paper as HTML, at this passage.
    """

    score: float
    fits: bool
    arxiv_id: str
    title: str
    section_path: tuple[str, ...]
    anchor: str
    kind: str
    month: str
    text: str
    passage_id: str
    categories: tuple[str, ...]
    primary_category: str
    subset: str
    grade: str
    url: str
    passage_url: str

    @classmethod
    def of(cls, scored: Scored[IndexedPassage]) -> Hit:
        """The hit of a scored passage."""
        passage = scored.item
        return cls(
            score=scored.score,
            fits=scored.fits,
            arxiv_id=passage.arxiv_id,
            title=passage.title,
            section_path=passage.section_path,
            anchor=passage.anchor,
            kind=passage.kind,
            month=passage.month,
            text=passage.text,
            passage_id=passage.passage_id,
            categories=passage.categories,
            primary_category=passage.primary_category,
            subset=passage.subset,
            grade=passage.grade,
            url=abstract_url(passage.arxiv_id),
            passage_url=passage.url,
        )


class Hits(list[Hit]):
    """The hits of a query, best first. fits: whether any fits the query; if not, they are the
    nearest ones. note: how the query was read, such as "showing results for …"; empty for an
    ordinary search.
    """

    def __init__(self, hits: Iterable[Hit] = (), *, fits: bool = True, note: str = "") -> None:
        super().__init__(hits)
        self.fits = fits
        self.note = note
