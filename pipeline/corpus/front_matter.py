"""An abstract that LaTeXML did not mark as one, and sections that are none."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pipeline.corpus.paper import Block, Section

_NAME = re.compile(r"abstract|summary", re.IGNORECASE)
_RUN_IN = re.compile(r"^(?:[Aa]bstract|ABSTRACT)\b\s*[.:—–-]*\s*")
# Authors who set the word by hand do so before the first section, after at most a byline or two.
_FIRST_BLOCKS = 6
_FEWEST_WORDS = 20

_NO_SECTION = re.compile(r"|references|bibliography", re.IGNORECASE)

Found = tuple[str | None, list[Section], list[Block]]


def find_abstract(sections: Sequence[Section], blocks: Sequence[Block]) -> Found:
    """The abstract of a page without `.ltx_abstract`, and the sections and blocks without it.

    It is looked for in a section titled Abstract, then in a paragraph before the first section that begins with the
    word or follows it. None where there is neither.
    """
    return _in_section(sections, blocks) or _in_paragraph(sections, blocks) or (None, list(sections), list(blocks))


def _in_section(sections: Sequence[Section], blocks: Sequence[Block]) -> Found | None:
    named = next((section for section in sections if _NAME.fullmatch(section.title)), None)
    if named is None:
        return None
    inside = [block for block in blocks if block.section_path == named.path and block.kind == "paragraph"]
    if not inside:
        return None
    rest = [block for block in blocks if block not in inside]
    return " ".join(block.text for block in inside), [section for section in sections if section != named], rest


def _in_paragraph(sections: Sequence[Section], blocks: Sequence[Block]) -> Found | None:
    for place, block in enumerate(blocks[:_FIRST_BLOCKS]):
        if block.section_path or block.kind != "paragraph" or not _RUN_IN.match(block.text):
            continue
        text = _RUN_IN.sub("", block.text)
        used = {place}
        if not text and place + 1 < len(blocks) and not blocks[place + 1].section_path:
            text, used = blocks[place + 1].text, {place, place + 1}
        if len(text.split()) >= _FEWEST_WORDS:
            return text, list(sections), [other for index, other in enumerate(blocks) if index not in used]
    return None


def without_empty(sections: Sequence[Section], blocks: Sequence[Block]) -> list[Section]:
    """The sections without those that hold nothing and say nothing: no title, or a heading left over a bibliography."""
    held = {block.section_path[: depth + 1] for block in blocks for depth in range(len(block.section_path))}
    return [section for section in sections if section.path in held or not _NO_SECTION.fullmatch(section.title)]
