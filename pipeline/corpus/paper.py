"""A paper of the corpus: the typed row of the table `papers`, without its text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.arxiv.identifiers import month_of
from pipeline.corpus.links import abstract_url

PAPER_COLUMNS = ["arxiv_id", "title", "authors", "abstract", "categories", "year"]
"""Columns of `papers` that `Paper.from_row` needs."""


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper. title and abstract: empty if it has none. authors: names. categories: primary
    first.
    """

    arxiv_id: str
    title: str
    authors: tuple[str, ...]
    abstract: str
    categories: tuple[str, ...]
    year: int | None

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Paper:
        """The paper of a row with PAPER_COLUMNS."""
        return cls(
            arxiv_id=row["arxiv_id"],
            title=row["title"] or "",
            authors=tuple(author["name"] for author in row["authors"] or ()),
            abstract=row["abstract"] or "",
            categories=tuple(row["categories"] or ()),
            year=row["year"],
        )

    @property
    def month(self) -> str:
        """The month of its id, YYYY-MM, whose tables hold it; empty for a malformed id."""
        return month_of(self.arxiv_id) or ""

    @property
    def url(self) -> str:
        """Its page on arXiv, with abstract and versions."""
        return abstract_url(self.arxiv_id)
