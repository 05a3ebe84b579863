"""Assemble the parsed page from the findings of a walk over it, for both parsers."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from itertools import chain

from pipeline.corpus.parse.bibliography import read_bibliography
from pipeline.corpus.parse.byline import read_bylines
from pipeline.corpus.parse.byline_text import Byline
from pipeline.corpus.parse.findings import Findings
from pipeline.corpus.parse.front_matter import (
    affiliation_paragraphs,
    affiliations_with_emails,
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
from pipeline.corpus.parse.typed_references import take_typed_references

# A byline that LaTeXML left in the text is among the first blocks.
_FIRST_BLOCKS = 6
# A thesis of 500 pages has 1,500,000.
_MOST_CHARACTERS = 10_000_000
_WITHOUT_MARKS = str.maketrans(dict.fromkeys((LINE, MARK, NOTE, AUTHOR, CELL, ERRED), " "))


def assemble(
    findings: Findings, html: bytes, known: Sequence[str] = (), *, errors: int, truncated: bool
) -> ParsedPage:
    """The parsed page. html: its bytes as they came. errors: LaTeXML's error marks in them.

    known: the paper's authors as arXiv's metadata names them.

    Raises PageError where the page holds no text at all, or more than ten million characters.
    """
    if findings.front:
        _take_unmarked(findings, known)
    _take_affiliations(findings)
    _take_affiliations_with_emails(findings)
    take_typed_references(findings)
    authors, notes = read_bylines(findings.bylines, findings.institutes, known)
    blocks = [Block("footnote", "authors", (), note) for note in notes] + findings.blocks
    abstract, sections = findings.abstract, findings.sections
    if abstract is None:
        abstract, sections, blocks = find_abstract(sections, blocks)
    if not blocks and not abstract:
        raise PageError("no_text", "no paragraph, table, caption or abstract on the page")
    headed = without_empty(sections, blocks)
    bibliography = [*findings.items, *read_bibliography(findings.printed_items)]
    of_authors, marks = characters_of_authors(authors, notes, _byline_text(findings))
    losses = _losses(findings, headed) + Counter(author_mark=marks)
    kept = kept_characters(
        f"{findings.title or ''}{findings.subtitle or ''}",
        of_authors,
        abstract,
        headed,
        blocks,
        bibliography,
    )
    if sum(kept.values()) > _MOST_CHARACTERS:
        raise PageError("text_too_long", f"{sum(kept.values()):,} characters of text")
    if "table" in kept:
        kept["table"] -= min(findings.repeated, kept["table"])
    # Kept and lost are counted apart: what neither explains went somewhere that no rule speaks of.
    losses += Counter(unaccounted=findings.seen - sum(kept.values()) - losses.total())
    return ParsedPage(
        title=join_subtitle(findings.title, findings.subtitle),
        authors=authors,
        abstract=abstract,
        sections=tuple(headed),
        blocks=tuple(blocks),
        bibliography=tuple(bibliography),
        paragraphs=sum(block.kind == "paragraph" for block in blocks),
        tables=findings.tables,
        figures=findings.figures,
        formulas=findings.formulas,
        math_without_tex=findings.math_without_tex,
        unconverted_macros=unconverted_macros(abstract, blocks),
        chars_seen=findings.seen,
        chars_kept=sum(kept.values()),
        kept=kept,
        losses={name: losses[name] for name in sorted(losses)},
        ltx_errors=errors,
        missing_citations=findings.missing_citations,
        truncated=truncated,
        html_bytes=len(html),
        html_sha256=hashlib.sha256(html).hexdigest(),
    )


def _take_unmarked(findings: Findings, known: Sequence[str]) -> None:
    """Turn the paragraphs that are an unmarked title and byline into these."""
    unmarked = find_byline(findings.front, findings.title, known)
    if unmarked is not None:
        findings.title, byline, letters = unmarked
        findings.bylines.append(Byline(byline))
        findings.blocks[:] = [
            block
            for block in findings.blocks
            if block.section_path or letters_of(block.text) not in letters
        ]


def _take_affiliations(findings: Findings) -> None:
    """Turn affiliation paragraphs into institutes, where names have a number for each."""
    numbers = {mark for byline in findings.bylines for mark in byline.marks if mark.isdigit()}
    if not numbers or findings.institutes:
        return
    paragraphs = affiliation_paragraphs(findings.blocks)
    if paragraphs and numbers == {str(number) for number in range(1, len(paragraphs) + 1)}:
        findings.institutes += [block.text for block in paragraphs]
        findings.blocks[:] = [block for block in findings.blocks if block not in paragraphs]


def _take_affiliations_with_emails(findings: Findings) -> None:
    """Turn a paragraph with an affiliation and an e-mail for each author into their contacts."""
    bylines = findings.bylines
    if not bylines or any(byline.contacts or byline.remarks for byline in bylines):
        return
    for place, block in enumerate(findings.blocks[:_FIRST_BLOCKS]):
        if block.kind != "paragraph" or block.section_path or "@" not in block.text:
            continue
        pairs, rest = affiliations_with_emails(block.text, len(bylines))
        for byline, (affiliation, email) in zip(bylines, pairs, strict=False):
            byline.contacts += [("affiliation", affiliation), ("email", email)]
        if pairs:
            taken = "".join(text for pair in pairs for text in pair)
            lost = visible(block.text) - visible(rest) - visible(taken)
            findings.lost["author_mark"].append("x" * lost)
            findings.blocks[place : place + 1] = [block._replace(text=rest)] if rest else []
            return


def _losses(findings: Findings, headed: Sequence[Section]) -> Counter[str]:
    """Visible characters that no field holds, by kind of element."""
    losses = Counter({name: visible("".join(texts)) for name, texts in findings.lost.items()})
    citations = "".join(text for text, _ in findings.citations)
    labels = "".join(label for _, label in findings.citations)
    losses["citation_label"] += visible(labels) - visible(without_markers(citations))
    headed_ids = {id(section) for section in headed}
    losses["empty_section"] = sum(
        visible(section.title) for section in findings.sections if id(section) not in headed_ids
    )
    return +losses


def _byline_text(findings: Findings) -> str:
    texts = chain(findings.institutes, *(byline.texts() for byline in findings.bylines))
    return " ".join(texts).translate(_WITHOUT_MARKS)
