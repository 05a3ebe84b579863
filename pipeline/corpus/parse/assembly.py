"""From what a walk over a page found to the parsed page: shared by both parsers."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain

from pipeline.corpus.parse.bibliography import ItemParts, read_bibliography
from pipeline.corpus.parse.byline import read_bylines
from pipeline.corpus.parse.byline_text import Byline
from pipeline.corpus.parse.front_matter import (
    affiliation_paragraphs,
    find_abstract,
    find_byline,
    letters_of,
    without_empty,
)
from pipeline.corpus.parse.measures import (
    characters_of_authors,
    kept_characters,
    unconverted_macros,
)
from pipeline.corpus.parse.parsed_page import (
    BibliographyItem,
    Block,
    PageError,
    ParsedPage,
    Section,
)
from pipeline.corpus.parse.policies import (
    AUTHOR,
    CELL,
    ERRED,
    LINE,
    MARK,
    NOTE,
    join_subtitle,
    visible,
    without_markers,
)

_WITHOUT_MARKS = str.maketrans(dict.fromkeys((LINE, MARK, NOTE, AUTHOR, CELL, ERRED), " "))


@dataclass(slots=True)
class Findings:
    """What one walk over one page found. `seen` counts visible characters, with each formula as its
    TeX.
    """

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


def assemble(
    found: Findings, html: bytes, known: Sequence[str] = (), *, errors: int, truncated: bool
) -> ParsedPage:
    """The paper of a page; `html` are its bytes as they came, `errors` LaTeXML's error marks in
    them.

    known: the paper's authors as arXiv's metadata names them.

    Raises PageError where the page holds no text at all.
    """
    if found.front:
        take_unmarked(found, known)
    take_affiliations(found)
    authors, notes = read_bylines(found.bylines, found.institutes, known)
    blocks = [Block("footnote", "authors", (), note) for note in notes] + found.blocks
    abstract, sections = found.abstract, found.sections
    if abstract is None:
        abstract, sections, blocks = find_abstract(sections, blocks)
    if not blocks and not abstract:
        raise PageError("no_text", "no paragraph, table, caption or abstract on the page")
    headed = without_empty(sections, blocks)
    bibliography = [*found.items, *read_bibliography(found.printed_items)]
    of_authors, marks = characters_of_authors(authors, notes, _byline_text(found))
    losses = _losses(found, headed) + Counter(author_mark=marks)
    kept = kept_characters(
        f"{found.title or ''}{found.subtitle or ''}",
        of_authors,
        abstract,
        headed,
        blocks,
        bibliography,
    )
    if "table" in kept:
        kept["table"] -= min(found.repeated, kept["table"])
    # Kept and lost are counted apart: what neither explains went somewhere that no rule speaks of.
    losses += Counter(unaccounted=found.seen - sum(kept.values()) - losses.total())
    return ParsedPage(
        title=join_subtitle(found.title, found.subtitle),
        authors=authors,
        abstract=abstract,
        sections=tuple(headed),
        blocks=tuple(blocks),
        bibliography=tuple(bibliography),
        paragraphs=sum(block.kind == "paragraph" for block in blocks),
        tables=found.tables,
        figures=found.figures,
        formulas=found.formulas,
        math_without_tex=found.math_without_tex,
        unconverted_macros=unconverted_macros(abstract, blocks),
        chars_seen=found.seen,
        chars_kept=sum(kept.values()),
        kept=kept,
        losses={name: losses[name] for name in sorted(losses)},
        ltx_errors=errors,
        missing_citations=found.missing_citations,
        truncated=truncated,
        html_bytes=len(html),
        html_sha256=hashlib.sha256(html).hexdigest(),
    )


def take_unmarked(found: Findings, known: Sequence[str]) -> None:
    """Make title and byline of paragraphs that are these, of a page that marks neither."""
    unmarked = find_byline(found.front, found.title, known)
    if unmarked is not None:
        found.title, byline, letters = unmarked
        found.bylines.append(Byline(byline))
        found.blocks[:] = [
            b for b in found.blocks if b.section_path or letters_of(b.text) not in letters
        ]


def take_affiliations(found: Findings) -> None:
    """Make institutes of paragraphs that are affiliations, of a page whose authors have a number
    for each of them.
    """
    numbers = {mark for byline in found.bylines for mark in byline.marks if mark.isdigit()}
    paragraphs = affiliation_paragraphs(found.blocks) if numbers and not found.institutes else []
    if paragraphs and numbers == {str(number) for number in range(1, len(paragraphs) + 1)}:
        found.institutes += [block.text for block in paragraphs]
        found.blocks[:] = [block for block in found.blocks if block not in paragraphs]


def _losses(found: Findings, headed: Sequence[Section]) -> Counter[str]:
    losses = Counter({name: visible("".join(texts)) for name, texts in found.lost.items()})
    shown = visible("".join(shown for _, shown in found.citations))
    losses["citation_label"] = shown - visible(
        without_markers("".join(text for text, _ in found.citations))
    )
    left = {id(section) for section in headed}
    losses["empty_section"] = sum(
        visible(section.title) for section in found.sections if id(section) not in left
    )
    return +losses


def _byline_text(found: Findings) -> str:
    texts = chain(found.institutes, *(byline.texts() for byline in found.bylines))
    return " ".join(texts).translate(_WITHOUT_MARKS)
