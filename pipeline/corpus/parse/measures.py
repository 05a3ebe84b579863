"""Counts of the characters that a parsed page keeps, by kind, and of macros left unconverted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from pipeline.corpus.parse.parsed_page import Author, BibliographyItem, Block, Section
from pipeline.corpus.parse.policies import fold, visible, without_markers
from pipeline.corpus.passages.sentences import without_formulas

_RULE = re.compile(r"\|(?: --- \|)+")
_MACRO = re.compile(r"\\[A-Za-z@]{2,}")


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
