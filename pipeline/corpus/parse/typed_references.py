"""Lists of references that authors typed by hand: paragraphs, lists, quotes or tables under
"References".

LaTeXML marks no item of them. The walk reads them as blocks; here these become items, and citations
such as "[2, 3]" or "[Lee99]" become markers where the items have such labels.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pipeline.corpus.parse import policies
from pipeline.corpus.parse.bibliography import ItemParts
from pipeline.corpus.parse.findings import Findings
from pipeline.corpus.parse.parsed_page import Block
from pipeline.corpus.passages.sentences import mask

# Headings of lists of references, language by language.
_HEADINGS = "|".join(
    (
        r"references?|bibliograph(?:y|ies)|bibliographical references|literature|works cited",
        r"r[ée]f[ée]rences(?: bibliographiques)?|bibliographie|sources bibliographiques",
        r"literatur(?:verzeichnis|angaben|hinweise|nachweise?)?|quellen(?:verzeichnis|angaben)?",
        r"referencias(?: bibliogr[aá]ficas)?|bibliograf[ií]a|obras citadas",
        r"refer[eê]ncias(?: bibliogr[aá]ficas)?|refer[èe]ncies|bibliografia",
        r"riferimenti(?: bibliografici)?|literatuur(?:lijst)?|bibliografie|referenties",
        r"referenser|referencer|referanser|litteratur(?:lista|liste|förteckning)?|lähteet",
        r"literatura|seznam literatury|piśmiennictwo|irodalom(?:jegyzék)?|hivatkozások",
        r"kaynak(?:lar|ça)|tài liệu tham khảo|daftar pustaka|βιβλιογραφία|αναφορές",
        r"(?:список (?:использованной )?)?литератур[аы]|библиография|список источников",
        r"(?:список )?літератур[аи]|список використаних джерел",
        r"(?:主要)?[参參]考(?:文[献獻]|資料|资料)|(?:引用)?文[献獻]|참고 ?문헌",
        r"المراجع|منابع|مراجع",
    )
)
# Headings of what is listed beside references: "References and notes".
_BESIDE = (
    r"notes|footnotes|endnotes|links|sources|resources|web ?sites|data sources|"
    r"(?:further|additional|suggested|recommended|related) readings?"
)
_TITLE = re.compile(
    r"(?:\W*(?:\d+|[IVX]+|[A-Z])\W+)?"
    r"(?:(?:list of|selected|cited|general|key|main|additional|annotated|supplementary) )?"
    rf"(?:{_HEADINGS})(?: cited| list)?"
    rf"(?:(?:,? (?:and|und|et|y|e|og|och|en|i) |\s?[&/]\s?)(?:{_HEADINGS}|{_BESIDE}))?\s?[.:]?",
    re.IGNORECASE,
)
_LABEL = re.compile(
    r"(?:\[\d{1,3}\]|\[[A-Z][\w+.&-]{1,14}\]|\(\d{1,3}\)|\d{1,3}[.)](?=\s)|[-•])[.:]?\s*"
)
_NEXT_NUMBER = re.compile(
    r"(?<=\s)\[(?P<bracketed>\d{1,3})\]\s+(?=\S)"
    r"|(?<=[.)]\s)(?<!\b[Vv]ol\.\s)(?<!\b[Nn]o\.\s)"
    r"(?:(?P<dotted>\d{1,3})\.|\((?P<round>\d{1,3})\))\s+(?=[^\W\d_])"
)
_RULE = re.compile(r"[|\s-]+")
# What a reference has, and a sentence on references does not: a year, an address, an identifier.
_EVIDENCE = re.compile(
    r"\b(?:1[89]|20)\d\d[a-z]?\b|https?:|arXiv|\b10\.\d{4}|[Ii]n press|[Tt]o appear"
)
_CITATION = re.compile(r"\[([\w+.&]{1,15}(?:\s*[,;–—-]\s*[\w+.&]{1,15})*)\]")
_RANGE = re.compile(r"(\d+)\s*[–—-]\s*(\d+)")
_KINDS = frozenset({"paragraph", "list", "table"})
_LONGEST_ITEM = 1_000
_MOST_IN_RANGE = 50


class _Item(NamedTuple):
    """An item: its name in citations (12, Lee99, or ""), its label, and the text after it."""

    name: str
    label: str
    text: str


def is_title_of_references(title: str) -> bool:
    """Whether a heading is that of a list of references."""
    return _TITLE.fullmatch(title) is not None


def take_typed_references(findings: Findings) -> None:
    """Turn the blocks that list references into items, on a page without any item."""
    blocks = [] if findings.printed_items else _blocks_of_list(findings.blocks)
    titles = [block.text for block in blocks if is_title_of_references(block.text)]
    listing = [block for block in blocks if block.text not in titles]
    items = [item for block in listing for item in _items_of(block)]
    is_single_block = len(items) == 1 and not items[0].label
    if is_single_block or not are_references([item.text for item in items]):
        return
    keys = [f"bib.item{place}" for place in range(1, len(items) + 1)]
    findings.printed_items += [
        ItemParts(
            key=key,
            raw=item.text,
            label=item.label,
            emphases=[words for words in findings.typed_emphases if words in item.text],
            links=[href for text, href in findings.typed_links if text and text in item.text],
        )
        for key, item in zip(keys, items, strict=True)
    ]
    findings.lost["bibliography_tag"] += [item.label for item in items]
    findings.lost["bibliography_title"] += titles
    blocks_taken = set(map(id, blocks))
    key_of = {item.name: key for item, key in zip(items, keys, strict=True) if item.name}
    findings.blocks[:] = [
        _with_markers(block, key_of, findings)
        for block in findings.blocks
        if id(block) not in blocks_taken
    ]


def are_references(texts: Sequence[str]) -> bool:
    """Whether most items show a year, an address or an identifier, and hardly one is a page of
    prose: a list of a hundred authors is as long.
    """
    if 10 * sum(len(text) > _LONGEST_ITEM for text in texts) > len(texts):
        return False
    evident = sum(_EVIDENCE.search(text) is not None for text in texts)
    return 2 * evident > len(texts)


def cited_names(text: str) -> Iterator[str]:
    """The names in a citation without its brackets: "2, 4–6" has 2, 4, 5 and 6."""
    for part in re.split(r"(?<!\s)\s*[,;]\s*", text):
        limits = _RANGE.fullmatch(part)
        if limits is None:
            yield part
            continue
        first, last = int(limits[1]), int(limits[2])
        if 0 < last - first < _MOST_IN_RANGE:
            yield from map(str, range(first, last + 1))
        else:
            yield part


def _blocks_of_list(blocks: Sequence[Block]) -> list[Block]:
    """The blocks below the last heading, or the last paragraph, that names a list of references."""
    headed = [
        block
        for block in blocks
        if any(map(is_title_of_references, block.section_path)) and block.kind in _KINDS
    ]
    if headed:
        return [block for block in headed if block.section_path == headed[-1].section_path]
    names = [
        place
        for place, block in enumerate(blocks)
        if block.kind == "paragraph" and is_title_of_references(block.text)
    ]
    if not names:
        return []
    path = blocks[names[-1]].section_path
    following = [block for block in blocks[names[-1] :] if block.section_path == path]
    return [block for block in following if block.kind in _KINDS]


def _items_of(block: Block) -> Iterator[_Item]:
    """The items of a block: the lines of a list or table, the numbered parts of a paragraph."""
    if block.kind == "paragraph":
        yield from map(_item, _parts(block.text))
        return
    for line in block.text.split("\n"):
        if _RULE.fullmatch(line):
            continue
        text = line
        if block.kind == "table":
            text = line.removeprefix("|").removesuffix("|").strip().replace(" | ", " ")
        yield _item(text)


def _parts(text: str) -> Iterator[str]:
    """The stretches of a paragraph that begin with [1], [2] and so on, or 1., 2. and so on."""
    first = _item(text)
    if not first.name.isdigit():
        yield text
        return
    start, expected = 0, int(first.name) + 1
    form = {"[": "bracketed", "(": "round"}.get(first.label[0], "dotted")
    for match in _NEXT_NUMBER.finditer(text):
        if match[form] == str(expected):
            yield text[start : match.start()].strip()
            start, expected = match.start(), expected + 1
    yield text[start:]


def _item(text: str) -> _Item:
    label = _LABEL.match(text)
    if label is None:
        return _Item("", "", text)
    return _Item(label[0].strip("[]().:-• "), label[0].strip(), text[label.end() :])


def _with_markers(block: Block, key_of: dict[str, str], findings: Findings) -> Block:
    """A block with citations such as [1], [2, 4–6] and [Lee99] as markers, outside of formulas and
    code.
    """
    if block.kind == "algorithm" or "[" not in block.text:
        return block
    pieces: list[str] = []
    end = 0
    for match in _CITATION.finditer(mask(block.text)):
        names = list(cited_names(match[1]))
        if all(name in key_of for name in names):
            keys = "; ".join(f"@{key_of[name]}" for name in dict.fromkeys(names))
            pieces += [block.text[end : match.start()], f"[{keys}]"]
            end = match.end()
            findings.lost["citation_label"].append(match[0])
    if not pieces:
        return block
    text = "".join([*pieces, block.text[end:]])
    return block._replace(text=text, cited_keys=policies.cited_keys(text))
