"""A passage of the corpus: the typed row of the table `passages`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.corpus.links import passage_url
from pipeline.corpus.parse.policies import without_markers
from pipeline.identity.identifiers import month_of
from pipeline.text import clip

PASSAGE_COLUMNS = ["passage_id", "arxiv_id", "anchor", "kind", "title", "section_path", "text"]
"""Columns of `passages` that `Passage.from_row` needs."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage of a paper.

    anchor: id of its first element in the page. title: of the paper; empty if it has none.
    section_path: titles of the sections around it, outermost first. text: formulas as `$TeX$`,
    citations as `[@key]`.
    """

    passage_id: str
    arxiv_id: str
    anchor: str
    kind: str
    title: str
    section_path: tuple[str, ...]
    text: str

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Passage:
        """The passage of a row with PASSAGE_COLUMNS."""
        return cls(
            passage_id=row["passage_id"],
            arxiv_id=row["arxiv_id"],
            anchor=row["anchor"],
            kind=row["kind"],
            title=clip(row["title"] or ""),
            section_path=tuple(map(clip, row["section_path"] or ())),
            text=row["text"],
        )

    @property
    def month(self) -> str:
        """The month of its paper's id, YYYY-MM, whose tables hold it; empty for a malformed id."""
        return month_of(self.arxiv_id) or ""

    @property
    def url(self) -> str:
        """Its place in the paper's HTML."""
        return passage_url(self.arxiv_id, self.anchor)

    def heading(self) -> str:
        """The paper's title and the sections around the passage."""
        return " > ".join(filter(None, (self.title, *self.section_path)))

    def content(self) -> str:
        """The text without citation markers."""
        return without_markers(self.text).strip()

    def prompt_text(self) -> str:
        """Heading and content."""
        return f"{self.heading()}\n{self.content()}"
