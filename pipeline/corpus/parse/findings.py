"""The result of a walk over a page, before the parsed page is assembled from it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from pipeline.corpus.parse.bibliography import ItemParts
from pipeline.corpus.parse.byline_text import Byline
from pipeline.corpus.parse.parsed_page import BibliographyItem, Block, Section


@dataclass(slots=True)
class Findings:
    """What a walk found on a page. seen: visible characters, with each formula as its TeX."""

    title: str | None = None
    subtitle: str | None = None
    abstract: str | None = None
    bylines: list[Byline] = field(default_factory=list)
    front: list[str] = field(default_factory=list)
    """Paragraphs before the first section, of a page without bylines."""
    institutes: list[str] = field(default_factory=list)
    """Affiliations and e-mails given for all authors at once."""
    sections: list[Section] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    items: list[BibliographyItem] = field(default_factory=list)
    printed_items: list[ItemParts] = field(default_factory=list)
    lost: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """Texts that went nowhere, by kind of element."""
    citations: list[tuple[str, str]] = field(default_factory=list)
    """(text with markers, what the page shows) of each citation."""
    missing_citations: int = 0
    tables: int = 0
    figures: int = 0
    formulas: int = 0
    math_without_tex: int = 0
    seen: int = 0
    repeated: int = 0
    """Characters that tables hold more than once: heads over several columns."""
