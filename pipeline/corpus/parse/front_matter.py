"""Title, byline and abstract that LaTeXML did not mark as such, and sections that are none."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from pipeline.corpus.parse.byline_text import normalize, plain_line
from pipeline.corpus.parse.parsed_page import Block, Section
from pipeline.corpus.parse.policies import AUTHOR, CELL, ERRED, LINE
from pipeline.corpus.parse.typed_references import is_title_of_references
from pipeline.identity.people import KnownNames

_NAME = re.compile(r"abstract|summary", re.IGNORECASE)
_RUN_IN = re.compile(r"^(?:[Aa]bstract|ABSTRACT)\b\s*[.:—–-]*\s*")
# Authors may set the word by hand.
_FEWEST_WORDS = 20

# Bylines of unknown classes in the suite and the real pages have 1 to 25 lines before the abstract.
_MOST_LINES, _MOST_TITLE_LINES, _MOST_WORDS, _LONGEST_LINE = 60, 3, 30, 500
_ABSTRACT = re.compile(rf"(?:^|[{LINE}{CELL}])\s*(?:[Aa]bstract|ABSTRACT)\b")
_NEXT_PLACE = re.compile(r"\n(?=\n|[\[(]?\d{1,2}[\])])")
_NO_LETTER = re.compile(r"[^\w]+|_+")


def before_prose(paragraphs: Iterable[str]) -> list[str]:
    """The paragraphs up to the abstract, or to one that is too long for a byline."""
    front: list[str] = []
    for paragraph in paragraphs:
        head, *abstract = _ABSTRACT.split(paragraph, maxsplit=1)
        if not all(map(_is_short, lines_of(head))):
            break
        front.append(head)
        if abstract:
            break
    return front


def find_byline(paragraphs: Sequence[str], known: Sequence[str]) -> tuple[str, str] | None:
    """(title, byline) in the paragraphs before the abstract, or None.

    The byline is the lines from the first known name on, where they print at least half of the
    names; up to three lines before it are the title.
    """
    lines = [line for paragraph in paragraphs for line in lines_of(paragraph) if letters_of(line)]
    names = [KnownNames(known).find(plain_line(line)) for line in lines[:_MOST_LINES]]
    start = next((number for number, places in enumerate(names) if places), len(lines))
    count = len({place.name for places in names for place in places})
    if start > _MOST_TITLE_LINES or not count or 2 * count < len({*known}):
        return None
    return plain_line(" ".join(lines[:start])), LINE.join(lines[start:])


def lines_of(paragraph: str) -> list[str]:
    """The lines of a paragraph, and those of the source where unknown macros are for authors, or a
    number in brackets begins one.
    """
    if AUTHOR in paragraph:
        paragraph = paragraph.replace("\n", LINE)
    elif ERRED in paragraph:
        paragraph = _NEXT_PLACE.sub(LINE, paragraph)
    return normalize(paragraph).split(LINE)


def _is_short(line: str) -> bool:
    return len(line) < _LONGEST_LINE and line.count(" ") < _MOST_WORDS


def letters_of(text: str) -> str:
    """The letters and digits of a text alone, marks left out."""
    return _NO_LETTER.sub("", text)


def find_abstract(
    sections: Sequence[Section], blocks: Sequence[Block]
) -> tuple[str | None, list[Section], list[Block]]:
    """The abstract of a page without `.ltx_abstract`, and the sections and blocks without it.

    It is looked for in a section titled Abstract, then in a paragraph before the first section that
    begins with the word or follows it. None where there is neither.
    """
    named = next((section for section in sections if _NAME.fullmatch(section.title)), None)
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


def without_empty(sections: Sequence[Section], blocks: Sequence[Block]) -> list[Section]:
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
