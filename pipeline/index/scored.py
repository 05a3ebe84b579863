"""Items with their scores, and the passages that a search finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pipeline.corpus.passage import Passage
from pipeline.index.relevance import Relevance
from pipeline.text import clip

Item = TypeVar("Item", covariant=True)


@dataclass(frozen=True, slots=True)
class Scored(Generic[Item]):
    """An item of a ranking. score: comparable only within the ranking. relevance: whether the item
    fits its query at all; None if unknown.
    """

    item: Item
    score: float
    relevance: Relevance | None = None

    @property
    def fits(self) -> bool:
        """Whether the item may fit its query."""
        return self.relevance != "none"


@dataclass(frozen=True, slots=True)
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
