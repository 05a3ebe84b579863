"""What of a page's text a Paper holds, by kind, and what in it LaTeXML did not convert."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from pipeline.corpus.paper import Author, BibliographyItem, Block, Section
from pipeline.corpus.policies import fold, visible, without_markers

_RULE = re.compile(r"\|(?: --- \|)+")
_MACRO = re.compile(r"\\[A-Za-z@]{2,}")
_TEX_SIGN = re.compile(r"\\.|[{}]|\$\$?", re.DOTALL)


def kept_characters(
    title: str | None,
    authors: int,
    abstract: str | None,
    sections: Sequence[Section],
    blocks: Sequence[Block],
    items: Sequence[BibliographyItem],
) -> dict[str, int]:
    """Characters of the page that a paper holds, by kind of element; those that citeloom put in do not count.

    `authors` are those of `characters_of_authors`.
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


def characters_of_authors(authors: Sequence[Author], notes: Sequence[str], bylines: str) -> tuple[int, int]:
    """(characters of bylines that stand in names, affiliations and e-mails, those that stand nowhere: marks, commas).

    Each text counts as often as the bylines say it, beside the notes that are blocks of their own: three authors may
    hold an affiliation that stands there once, and `{a, b}@x.org` stands for two addresses.
    """
    page = fold(bylines)
    for note in notes:
        page = page.replace(note, "", 1)
    held = Counter(text for author in authors for text in (author.name, *author.affiliations, *author.emails))
    kept = sum(_times_in(page, text, times) for text, times in held.items())
    return kept, max(0, visible(page) - page.count("$") - kept)


def _times_in(page: str, text: str, times: int) -> int:
    name = text.partition("@")[0]
    said = text if text in page else name
    return visible(said) * min(times, page.count(said))


def _of_the_page(text: str) -> int:
    """Characters of a text without its `$`, `[@key]`, and Markdown's bars and rules. A `\\|` stands for one bar."""
    count = visible(without_markers(text) if "[@" in text else text) - text.count("$")
    if "| --- |" in text:
        rows = [line for line in text.split("\n") if line.startswith("| ")]
        count -= sum(row.count("|") for row in rows)
        count -= sum(3 * row.count("---") for row in rows if _RULE.fullmatch(row))
    return count


def unconverted_macros(abstract: str | None, blocks: Sequence[Block]) -> int:
    """Raw `\\macro` words in the text: what LaTeXML left as it was. Algorithms and formulas have their own."""
    texts = [abstract or "", *(block.text for block in blocks if block.kind != "algorithm")]
    return sum(map(_macros_in, texts))


def _macros_in(text: str) -> int:
    """The macros outside of formulas; looked at sign by sign only where a quick look at every other `$` finds some."""
    if "\\" not in text or not _MACRO.search("".join(text.replace("$$", "$").split("$")[::2])):
        return 0
    return len(_MACRO.findall(_outside_formulas(text)))


def _outside_formulas(text: str) -> str:
    """A text without its formulas, which may hold others in braces: `$$f\\mbox{$x$}$$` is one."""
    pieces: list[str] = []
    start, depth, opened = 0, 0, ""
    for found in _TEX_SIGN.finditer(text):
        sign = found.group()
        if not opened and sign[0] == "$":
            pieces.append(text[start : found.start()])
            depth, opened = 0, sign
        elif opened:
            depth += (sign == "{") - (sign == "}")
            if sign == opened and depth <= 0:
                start, opened = found.end(), ""
    return "".join(pieces) if opened else "".join(pieces) + text[start:]
