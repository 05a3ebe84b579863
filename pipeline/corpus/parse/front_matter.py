"""Title, byline and abstract that LaTeXML did not mark as such, and sections that are none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

from pipeline.corpus.parse.byline_rules import is_affiliation, split_behind_country
from pipeline.corpus.parse.byline_text import normalize, plain_line
from pipeline.corpus.parse.parsed_page import Block, Section
from pipeline.corpus.parse.policies import AUTHOR, CELL, LINE
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
_ORCID = re.compile(r"https?://orcid\.org/[\dX-]+")
_PLACE_AND_EMAIL = re.compile(r"(?P<place>[^@]{1,1000})@(?P<host>[\w-]+(?:\.[\w-]+)+)")
_NO_LETTER = re.compile(r"[^\w]+|_+")

AbstractAndRest = tuple[str | None, list[Section], list[Block]]


def find_byline(
    paragraphs: Sequence[str], title: str | None, known: Sequence[str]
) -> tuple[str, str, str] | None:
    """(title, byline, letters of both) in the paragraphs before the first section, or None.

    A title is first, in up to three lines. The byline begins with the first known name and prints
    at least half of them. Where the page has its title elsewhere, names may be first.
    """
    # The arguments of an unknown macro for authors are on lines of their own in the source.
    paragraphs = [text.replace("\n", LINE) if AUTHOR in text else text for text in paragraphs]
    text = _ABSTRACT.split(LINE.join(paragraphs), maxsplit=1)[0]
    lines = [line for line in text.split(LINE) if letters_of(line)]
    lines = list(takewhile(_is_no_prose, lines[:_MOST_LINES]))
    of_title = [line for line in lines if title and letters_of(line) in letters_of(title)]
    lines = [line for line in lines if line not in of_title]
    names = KnownNames(known)
    names_by_line = [
        {place.name for place in names.find(plain_line(normalize(line)))} for line in lines
    ]
    start = next((place for place, in_line in enumerate(names_by_line) if in_line), None)
    if start is None or start > _MOST_TITLE_LINES:
        return None
    if 2 * len(set().union(*names_by_line)) < len(names.names):
        return None
    byline = lines[start:]
    if title is None:
        of_title = lines[:start]
        title = " ".join(plain_line(normalize(line)) for line in of_title)
    if not title:
        return None
    return title, LINE.join(byline), letters_of("".join(of_title + byline))


def affiliation_paragraphs(blocks: Sequence[Block]) -> list[Block]:
    """The paragraphs before the first section that hold an affiliation alone, one each.

    This is how LaTeXML prints an environment for affiliations that it does not know.
    """
    front = [
        block
        for block in blocks[:_MOST_LINES]
        if block.kind == "paragraph" and not block.section_path
    ]
    return [block for block in front if is_affiliation(block.text) and _is_no_prose(block.text)]


def affiliations_with_emails(text: str, count: int) -> tuple[list[tuple[str, str]], str]:
    """(affiliation, e-mail) of each of `count` authors, and the text after them; no pairs where the
    text is anything else.

    LaTeXML prints the arguments of LIPIcs's \\author after the name like this: place, e-mail and
    ORCID without spaces between them.
    """
    bare = _ORCID.sub(" ", text)
    matches = list(_PLACE_AND_EMAIL.finditer(bare))
    pairs = []
    for match in matches:
        place, name = split_behind_country(match["place"].strip())
        if name and is_affiliation(place) and _is_no_prose(place):
            pairs.append((place, f"{name}@{match['host']}"))
    if not pairs or len(pairs) != len(matches) or len(pairs) != count:
        return [], text
    return pairs, bare[matches[-1].end() :].strip()


def _is_no_prose(line: str) -> bool:
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
