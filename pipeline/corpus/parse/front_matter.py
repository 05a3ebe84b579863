"""Title, byline and abstract that LaTeXML did not mark as such, and sections that are none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

from pipeline.corpus.parse.byline_text import normalize, plain_line
from pipeline.corpus.parse.parsed_page import Block, Section
from pipeline.corpus.parse.policies import AUTHOR, CELL, ERRED, LINE
from pipeline.corpus.parse.typed_references import is_title_of_references
from pipeline.identity.people import KnownNames

_NAME = re.compile(r"abstract|summary", re.IGNORECASE)
_RUN_IN = re.compile(r"^(?:[Aa]bstract|ABSTRACT)\b\s*[.:—–-]*\s*")
# Authors who set the word by hand do so before the first section, after at most a byline or two.
_FIRST_BLOCKS = 6
_FEWEST_WORDS = 20

# Bylines of unknown classes in the suite and the real pages have 1 to 25 lines before the abstract.
_MOST_LINES, _MOST_TITLE_LINES, _MOST_WORDS, _LONGEST_LINE = 60, 3, 30, 500
_ABSTRACT = re.compile(rf"(?:^|[{LINE}{CELL}])\s*(?:[Aa]bstract|ABSTRACT)\b")
_NEXT_PLACE = re.compile(r"\n(?=\n|[\[(]?\d{1,2}[\])])")
_NO_LETTER = re.compile(r"[^\w]+|_+")

AbstractAndRest = tuple[str | None, list[Section], list[Block]]


def find_byline(paragraphs: Sequence[str], known: Sequence[str]) -> tuple[str, str] | None:
    """(title, byline) in the paragraphs before the first section, or None.

    The byline is the lines from the first known name to the abstract, where they print at least
    half of the names; up to three lines before it are the title.
    """
    text = LINE.join(line for paragraph in paragraphs for line in lines_of(paragraph))
    text = _ABSTRACT.split(text, maxsplit=1)[0]
    lines = [line for line in text.split(LINE) if letters_of(line)]
    lines = list(takewhile(is_no_prose, lines[:_MOST_LINES]))
    names = KnownNames(known)
    in_lines = [{place.name for place in names.find(plain_line(normalize(line)))} for line in lines]
    start = next((place for place, in_line in enumerate(in_lines) if in_line), None)
    if start is None or start > _MOST_TITLE_LINES:
        return None
    if 2 * len(set().union(*in_lines)) < len(names.names):
        return None
    return LINE.join(lines[:start]), LINE.join(lines[start:])


def lines_of(paragraph: str) -> list[str]:
    """The lines of a paragraph, and those of the source where unknown macros are for authors, or a
    number in brackets begins one.
    """
    if AUTHOR in paragraph:
        paragraph = paragraph.replace("\n", LINE)
    elif ERRED in paragraph:
        paragraph = _NEXT_PLACE.sub(LINE, paragraph)
    return paragraph.split(LINE)


def is_no_prose(line: str) -> bool:
    """Whether a line is short enough for one of a title or a byline."""
    text = plain_line(normalize(line))
    return len(text.split()) <= _MOST_WORDS and len(text) < _LONGEST_LINE


def letters_of(text: str) -> str:
    """The letters and digits of a text alone, marks left out."""
    return _NO_LETTER.sub("", text)


def find_abstract(sections: Sequence[Section], blocks: Sequence[Block]) -> AbstractAndRest:
    """The abstract of a page without `.ltx_abstract`, and the sections and blocks without it.

    It is looked for in a section titled Abstract, then in a paragraph before the first section that
    begins with the word or follows it. None where there is neither.
    """
    return (
        _in_section(sections, blocks)
        or _in_paragraph(sections, blocks)
        or (None, list(sections), list(blocks))
    )


def _in_section(sections: Sequence[Section], blocks: Sequence[Block]) -> AbstractAndRest | None:
    named = next((section for section in sections if _NAME.fullmatch(section.title)), None)
    if named is None:
        return None
    inside = [
        block for block in blocks if block.section_path == named.path and block.kind == "paragraph"
    ]
    if not inside:
        return None
    text = " ".join(block.text for block in inside)
    other_sections = [section for section in sections if section != named]
    return text, other_sections, [block for block in blocks if block not in inside]


def _in_paragraph(sections: Sequence[Section], blocks: Sequence[Block]) -> AbstractAndRest | None:
    for place, block in enumerate(blocks[:_FIRST_BLOCKS]):
        if block.section_path or block.kind != "paragraph" or not _RUN_IN.match(block.text):
            continue
        text = _RUN_IN.sub("", block.text)
        end = place + 1
        if not text and end < len(blocks) and not blocks[end].section_path:
            text = blocks[end].text
            end += 1
        if len(text.split()) >= _FEWEST_WORDS:
            return text, list(sections), [*blocks[:place], *blocks[end:]]
    return None


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
