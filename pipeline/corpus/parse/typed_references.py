"""Lists of references that authors typed by hand: paragraphs, lists or quotes under "References".

LaTeXML marks no item of them. The walk reads them as blocks; here these become items.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pipeline.corpus.parse.bibliography import ItemParts
from pipeline.corpus.parse.findings import Findings
from pipeline.corpus.parse.parsed_page import Block

# Headings of lists of references, in the languages of arXiv's papers.
_NAMES = (
    r"references?|bibliograph(?:y|ies)|literature|works cited|r[ée]f[ée]rences|bibliographie"
    r"|literatur(?:verzeichnis)?|referencias|bibliograf[ií]a|refer[eê]ncias|riferimenti"
    r"|список литературы|参考文献"
)
_TITLE = re.compile(
    r"(?:\W*(?:\d+|[IVX]+|[A-Z])\W+)?(?:(?:list of|selected|cited|annotated|additional) )?"
    rf"(?:{_NAMES})(?: cited| list| bibliogr\w+)?(?:(?:,? (?:and|und|et|y) |\s?[&/]\s?).{{1,40}})?"
    r"\s?[.:]?",
    re.IGNORECASE,
)
_LABEL = re.compile(
    r"(?:\[\d{1,3}\]|\[[A-Z][\w+.&-]{1,14}\]|\(\d{1,3}\)|\d{1,3}[.)](?=\s)|[-•])[.:]?\s*"
)
_NEXT_NUMBER = re.compile(r"(?<=\s)(?=\[\d{1,3}\]\s)")
# What a reference has, and a sentence on references does not: a year, an address, an identifier.
_EVIDENCE = re.compile(
    r"\b(?:1[89]|20)\d\d[a-z]?\b|https?:|arXiv|\b10\.\d{4}|[Ii]n press|[Tt]o appear"
)
_KINDS = ("paragraph", "list")


def is_title_of_references(title: str) -> bool:
    """Whether a heading is that of a list of references."""
    return _TITLE.fullmatch(title) is not None


def take_typed_references(findings: Findings) -> None:
    """Turn the blocks that list references into items, on a page without any item."""
    blocks = [] if findings.printed_items else _blocks_of_list(findings.blocks)
    titles = [block.text for block in blocks if is_title_of_references(block.text)]
    items = list[ItemParts]()
    for text in (text for block in blocks for text in _texts_of(block) if text not in titles):
        label = _LABEL.match(text)
        end = label.end() if label else 0
        items.append(ItemParts(f"bib.item{len(items) + 1}", text[end:], label=text[:end].strip()))
    # Most items have what a reference has; one alone has a label.
    evident = sum(_EVIDENCE.search(item.raw) is not None for item in items)
    if 2 * evident <= len(items) or (len(items) == 1 and not items[0].label):
        return
    findings.printed_items += items
    findings.lost["bibliography_tag"] += [item.label for item in items]
    findings.lost["bibliography_title"] += titles
    findings.blocks[:] = [block for block in findings.blocks if block not in blocks]


def _blocks_of_list(blocks: Sequence[Block]) -> list[Block]:
    """The blocks below the last heading, or the last paragraph, that names a list of references."""
    listed = [block for block in blocks if block.kind in _KINDS]
    headed = [block for block in listed if any(map(is_title_of_references, block.section_path))]
    if headed:
        return [block for block in headed if block.section_path == headed[-1].section_path]
    names = [place for place, block in enumerate(listed) if is_title_of_references(block.text)]
    if not names:
        return []
    following = listed[names[-1] :]
    return [block for block in following if block.section_path == following[0].section_path]


def _texts_of(block: Block) -> Iterator[str]:
    """The items of a block: the lines of a list, the numbered parts of a paragraph."""
    if block.kind == "list":
        yield from block.text.split("\n")
    else:
        yield from (part.strip() for part in _NEXT_NUMBER.split(block.text))
