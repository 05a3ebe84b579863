"""The result of either parser: what a page says, as values.

Field by field these are the columns of `papers` in `pipeline.tables`, but for the id, the subset
and what metadata alone knows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple


class PageError(ValueError):
    """A page that cannot become a paper. reason: not_html, no_text, too_deep,
    table_too_large or text_too_long.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason, self.detail = reason, detail


UNLINKED = "affiliations"
"""The anchor of a note that holds an affiliation of which the page does not say whose it is."""


class Author(NamedTuple):
    """One author: the name alone, and what was glued to it."""

    name: str
    affiliations: tuple[str, ...] = ()
    emails: tuple[str, ...] = ()


class Section(NamedTuple):
    """One section. depth: from 1. path: titles from the outermost section to this one."""

    anchor: str
    number: str | None
    title: str
    depth: int
    path: tuple[str, ...]


class Block(NamedTuple):
    """One stretch of text: a paragraph, list, table, caption, theorem, algorithm or footnote.

    `text` has math as `$TeX$` or `$$TeX$$` and citations as `[@key]`; lists, tables and algorithms
    keep line breaks. `cited_keys` are the ids of the bibliography items it cites, each once, in
    order of first citation.
    """

    kind: str
    anchor: str
    section_path: tuple[str, ...]
    text: str
    cited_keys: tuple[str, ...] = ()


class BibliographyItem(NamedTuple):
    """One bibliography item: as printed, and what could be read out of it."""

    key: str
    raw: str
    title: str | None = None
    authors: tuple[str, ...] = ()
    year: int | None = None
    venue: str | None = None
    doi: str | None = None
    arxiv_id: str | None = None


@dataclass(frozen=True, slots=True)
class ParsedPage:
    """Everything that a parser reads from one page.

    Characters are those that are not white space. `chars_seen` counts the page's visible text with
    each formula as its TeX; `losses` counts what of it went nowhere, by kind of element; `kept`
    counts what of it is in the fields above, by kind too, and `chars_kept` is its sum. What is left
    over is neither: a test holds that under 0.5 %.
    """

    title: str | None = None
    authors: tuple[Author, ...] = ()
    authors_differ: int = 0
    abstract: str | None = None
    sections: tuple[Section, ...] = ()
    blocks: tuple[Block, ...] = ()
    bibliography: tuple[BibliographyItem, ...] = ()
    paragraphs: int = 0
    tables: int = 0
    figures: int = 0
    formulas: int = 0
    math_without_tex: int = 0
    unconverted_macros: int = 0
    chars_seen: int = 0
    chars_kept: int = 0
    kept: Mapping[str, int] = field(default_factory=dict)
    losses: Mapping[str, int] = field(default_factory=dict)
    ltx_errors: int = 0
    missing_citations: int = 0
    truncated: bool = False
    html_bytes: int = 0
    html_sha256: str = ""

    def as_row(self) -> dict[str, Any]:
        """The columns of `papers` that the page alone decides."""
        return {
            **{field.name: getattr(self, field.name) for field in fields(self)},
            "authors": [author._asdict() for author in self.authors],
            "sections": [section._asdict() for section in self.sections],
            "blocks": [block._asdict() for block in self.blocks],
            "bibliography": [item._asdict() for item in self.bibliography],
            "kept": sorted(self.kept.items()),
            "losses": sorted(self.losses.items()),
        }
