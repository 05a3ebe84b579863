"""A paper of the corpus: the typed row of the table `papers`, alone or with all that was read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.corpus.links import abstract_url
from pipeline.corpus.passage import Passage
from pipeline.identity.identifiers import month_of
from pipeline.text import clip

PAPER_COLUMNS = ["arxiv_id", "title", "authors", "year", "categories"]
"""Columns of `papers` that `Paper.from_row` needs."""


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper. title: empty if it has none. authors: names. categories: primary first."""

    arxiv_id: str
    title: str
    authors: tuple[str, ...]
    year: int | None
    categories: tuple[str, ...]

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Paper:
        """The paper of a row with PAPER_COLUMNS."""
        return Paper(
            arxiv_id=row["arxiv_id"],
            title=clip(row["title"] or ""),
            authors=tuple(clip(author["name"]) for author in row["authors"] or ()),
            year=row["year"],
            categories=tuple(row["categories"] or ()),
        )

    @property
    def month(self) -> str:
        """The month of its id, YYYY-MM, whose tables hold it; empty for a malformed id."""
        return month_of(self.arxiv_id) or ""

    @property
    def url(self) -> str:
        """Its page on arXiv, with abstract and versions."""
        return abstract_url(self.arxiv_id)


@dataclass(frozen=True, slots=True)
class PaperReference:
    """An item of a paper's bibliography. raw: as printed. arxiv_id: of the cited paper, if it is
    known to arXiv.
    """

    key: str
    raw: str
    title: str | None
    authors: tuple[str, ...]
    year: int | None
    venue: str | None
    doi: str | None
    arxiv_id: str | None


@dataclass(frozen=True, slots=True)
class FullPaper(Paper):
    """A paper with its passages and references in the order of the page."""

    abstract: str
    passages: tuple[Passage, ...]
    references: tuple[PaperReference, ...]
