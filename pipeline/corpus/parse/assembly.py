"""Assemble the parsed page from the findings of a walk over it, for both parsers, and count the
characters that it keeps and loses.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from itertools import chain

from pipeline.corpus.parse.bibliography import read_bibliography
from pipeline.corpus.parse.byline import read_bylines
from pipeline.corpus.parse.byline_text import Byline, before_prose, find_byline, letters_of
from pipeline.corpus.parse.findings import Findings
from pipeline.corpus.parse.parsed_page import (
    UNLINKED,
    Author,
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
    fold,
    join_subtitle,
    visible,
    without_markers,
)
from pipeline.corpus.parse.typed_references import is_title_of_references, take_typed_references
from pipeline.corpus.passages.sentences import without_formulas

# A thesis of 500 pages has 1,500,000.
_MOST_CHARACTERS = 10_000_000
# What stands above the first section, and says nothing of the paper: the day on which its page was
# made, keywords, "?reference?", which \xpatchcmd was to print for a missing label, and ACM's
# permission. A keyword line is not as long as an abstract.
_FRAME = re.compile(
    r"(?P<date>(?:January|February|March|April|May|June|July|August|September|October|November"
    r"|December) \d\d?, \d{4})"
    r"|(?P<keywords>(?:Key ?words|Index Terms)\b.{0,400})|(?P<missing_label>\?++(?:\w++\?++)?)"
    r"|(?P<publication_data>Permission to make digital or hard copies .*)",
    re.IGNORECASE | re.DOTALL,
)
_RULE = re.compile(r"\|(?: --- \|)+")
_MACRO = re.compile(r"\\[A-Za-z@]{2,}")
# An abstract that LaTeXML did not mark as such.
_ABSTRACT = re.compile(r"abstract|summary", re.IGNORECASE)
_RUN_IN = re.compile(r"^(?:[Aa]bstract|ABSTRACT)\b\s*[.:—–-]*\s*")
# Authors may set the word by hand.
_FEWEST_WORDS = 20
_WITHOUT_MARKS = str.maketrans(dict.fromkeys((LINE, MARK, NOTE, AUTHOR, CELL, ERRED), " "))


def assemble(
    findings: Findings, html: bytes, known: Sequence[str] = (), *, errors: int, truncated: bool
) -> ParsedPage:
    """The parsed page. html: its bytes as they came. errors: LaTeXML's error marks in them.

    known: the paper's authors as arXiv's metadata names them.

    Raises PageError where the page holds no text at all, or more than ten million characters.
    """
    _set_frame_aside(findings)
    front = before_prose(findings.front)
    if not findings.bylines:
        if unmarked := find_byline(front, known):
            title, text = unmarked
            findings.title = findings.title or title or None
            findings.bylines.append(Byline(text))
            _remove_blocks(findings, letters_of("".join(front)))
        front = []
    take_typed_references(findings)
    byline = read_bylines(findings.bylines, findings.institutes, known, front)
    _remove_blocks(findings, letters_of("".join(byline.front)))
    notes = [*byline.remarks, *byline.unlinked]
    blocks = [Block("footnote", "authors", (), note) for note in byline.remarks]
    blocks += [Block("footnote", UNLINKED, (), text) for text in byline.unlinked]
    blocks += findings.blocks
    abstract, sections = findings.abstract, findings.sections
    if abstract is None:
        abstract, sections, blocks = _find_abstract(sections, blocks)
    if not blocks and not abstract:
        raise PageError("no_text", "no paragraph, table, caption or abstract on the page")
    headed = _without_empty(sections, blocks)
    bibliography = [*findings.items, *read_bibliography(findings.printed_items)]
    of_authors, marks = characters_of_authors(
        byline.authors, notes, _byline_text(findings, byline.front)
    )
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
        authors=byline.authors,
        authors_differ=byline.differ,
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


def _find_abstract(
    sections: Sequence[Section], blocks: Sequence[Block]
) -> tuple[str | None, list[Section], list[Block]]:
    """The abstract of a page without `.ltx_abstract`, and the sections and blocks without it.

    It is looked for in a section titled Abstract, then in a paragraph before the first section that
    begins with the word or follows it. None where there is neither.
    """
    named = next((section for section in sections if _ABSTRACT.fullmatch(section.title)), None)
    path = named.path if named else ()
    inside = [block for block in blocks if block.section_path == path and block.kind == "paragraph"]
    if named is None:
        while inside and not _RUN_IN.match(inside[0].text):
            inside.pop(0)
        is_heading = bool(inside) and not _RUN_IN.sub("", inside[0].text)
        inside = inside[: 1 + is_heading]
    text = _RUN_IN.sub("", " ".join(block.text for block in inside))
    if not text or (named is None and len(text.split()) < _FEWEST_WORDS):
        return None, [*sections], [*blocks]
    others = [section for section in sections if section != named]
    return text, others, [block for block in blocks if block not in inside]


def _without_empty(sections: Sequence[Section], blocks: Sequence[Block]) -> list[Section]:
    """The sections without empty ones that have no title, or head a bibliography."""
    with_text = {
        block.section_path[: depth + 1]
        for block in blocks
        for depth in range(len(block.section_path))
    }
    return [
        section
        for section in sections
        if section.path in with_text
        or (section.title and not is_title_of_references(section.title))
    ]


def _remove_blocks(findings: Findings, letters: str) -> None:
    """Remove the blocks before the first section that were read as part of a byline."""
    if letters:
        findings.blocks[:] = [
            block
            for block in findings.blocks
            if block.section_path or letters_of(block.text) not in letters
        ]


def _set_frame_aside(findings: Findings) -> None:
    for block in findings.blocks[:]:
        frame = None if block.section_path else _FRAME.fullmatch(block.text)
        if frame:
            findings.blocks.remove(block)
            findings.lost[str(frame.lastgroup)].append(block.text)


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


def _byline_text(findings: Findings, front: Sequence[str]) -> str:
    texts = chain(findings.institutes, front, *(byline.texts() for byline in findings.bylines))
    return " ".join(texts).translate(_WITHOUT_MARKS)


def kept_characters(
    title: str | None,
    authors: int,
    abstract: str | None,
    sections: Sequence[Section],
    blocks: Sequence[Block],
    items: Sequence[BibliographyItem],
) -> dict[str, int]:
    """Characters of the page that a paper holds, by kind of element; those that citeloom added do
    not count.

    authors: the characters of bylines, from `characters_of_authors`.
    """
    kept = Counter(
        title=visible(title or ""),
        authors=authors,
        abstract=_of_the_page(abstract or ""),
        heading=visible("".join(section.title + (section.number or "") for section in sections)),
        bibliography=visible("".join(item.raw for item in items)),
    )
    for kind in {block.kind for block in blocks}:
        kept[kind] = _of_the_page("\n".join(block.text for block in blocks if block.kind == kind))
    return {kind: kept[kind] for kind in sorted(kept) if kept[kind]}


def characters_of_authors(
    authors: Sequence[Author], notes: Sequence[str], bylines: str
) -> tuple[int, int]:
    """(characters of bylines that are in names, affiliations and e-mails; other characters, such as
    marks and commas).

    A text counts at most as often as it occurs in the bylines without `notes`, which are blocks of
    their own: three authors may have an affiliation that is printed once, and `{a, b}@x.org` is two
    addresses.
    """
    page = fold(bylines)
    for note in notes:
        page = page.replace(note, "", 1)
    texts = Counter(
        text for author in authors for text in (author.name, *author.affiliations, *author.emails)
    )
    kept = sum(_kept_of(text, page, times) for text, times in texts.items())
    return kept, max(0, visible(page) - page.count("$") - kept)


def _kept_of(text: str, page: str, times: int) -> int:
    """Characters of the page that a text with so many authors accounts for."""
    if text in page:
        return visible(text) * min(times, page.count(text))
    # The parts of an e-mail, and the lines of an address, which are apart on the page.
    parts = [text.partition("@")[0]] if "@" in text else text.split(", ")
    return sum(visible(part) * min(times, page.count(part)) for part in parts if part)


def _of_the_page(text: str) -> int:
    """Characters of a text without `$`, `[@key]`, `[?key]`, and Markdown's bars and rules. A `\\|`
    is one bar of the page.
    """
    count = visible(without_markers(text)) - text.count("$")
    if "| --- |" in text:
        rows = [line for line in text.split("\n") if line.startswith("| ")]
        count -= sum(row.count("|") for row in rows)
        count -= sum(3 * row.count("---") for row in rows if _RULE.fullmatch(row))
    return count


def unconverted_macros(abstract: str | None, blocks: Sequence[Block]) -> int:
    """Unconverted `\\macro` words in the text; not those of algorithms and formulas."""
    texts = [abstract or "", *(block.text for block in blocks if block.kind != "algorithm")]
    return sum(len(_MACRO.findall(without_formulas(text))) for text in texts if "\\" in text)
