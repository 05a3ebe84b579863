"""Packing a paper's blocks into passages of 20 to 300 words.

Neighbouring paragraphs of one section are joined while they stay within TARGET_WORDS. Tables,
captions, lists, theorems and algorithms stand alone unless they are too short for a search to find
them, or belong to the block before.
"""

from __future__ import annotations

import re
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, takewhile
from operator import attrgetter
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.corpus.passages.sentences import split_lines, split_table, split_text
from pipeline.corpus.passages.text import count_words
from pipeline.identity.identifiers import month_of
from pipeline.identity.months import month_name

FEWEST_WORDS, MOST_WORDS = 20, 300
# WikiChat packs neighbours under 200 tokens of BGE-M3; 200 words keep most paragraphs of a paper
# whole.
TARGET_WORDS = 200
# A passage of 300 words has 2,000 characters, a formula that stays whole up to 12,000.
MOST_CHARACTERS = 50_000
# The words that a longer part is said to have: it is left out later, and a neighbour joined to it
# would be lost with it.
_NOT_JOINED = MOST_WORDS + 1
NAMESPACE = uuid.UUID("6f1d3f3e-6f0b-5c0e-9a53-2f7c5d1c8a41")

_PROSE = {"paragraph", "footnote"}
_SPLITTERS = {
    "table": split_table,
    "list": split_lines,
    "theorem": split_lines,
    "algorithm": split_lines,
}
_KEY = re.compile(r"@([^;\[\]]++)([;\]]?)")

_BIN = 20
_STARTS = range(FEWEST_WORDS, MOST_WORDS, _BIN)
SHORT, LONG = f"under {FEWEST_WORDS}", f"over {MOST_WORDS}"
"""The ranges of passages outside the limits of packing."""


def length_histogram(words: pa.ChunkedArray) -> dict[str, int]:
    """The number of passages of each range of lengths, the shortest first; empty without any.

    words: the lengths of passages in words.
    """
    if not len(words):
        return {}
    histogram = dict.fromkeys(map(_range_of, [0, *_STARTS, MOST_WORDS + 1]), 0)
    for length in pc.value_counts(words).to_pylist():
        histogram[_range_of(length["values"])] += length["counts"]
    return histogram


def _range_of(length: int) -> str:
    if length < FEWEST_WORDS:
        return SHORT
    if length > MOST_WORDS:
        return LONG
    start = min(length, _STARTS[-1]) // _BIN * _BIN
    end = MOST_WORDS if start == _STARTS[-1] else start + _BIN - 1
    return f"{start} to {end}"


class TextBlock(NamedTuple):
    """A block of a paper with its number of words; or, packed, the text of one passage.

    section_path: titles, outermost first. anchor: id of its first element in the page.
    """

    kind: str
    anchor: str
    section_path: tuple[str, ...]
    text: str
    cited_keys: tuple[str, ...]
    words: int


class _Group:
    """Blocks that become one passage. `path` is the beginning that their section paths share."""

    __slots__ = ("blocks", "path", "words")

    def __init__(self, block: TextBlock) -> None:
        self.blocks, self.path, self.words = [block], block.section_path, block.words

    def add(self, block: TextBlock) -> None:
        """Add one more block of the same section."""
        self.blocks.append(block)
        self.words += block.words

    def merge(self, following: _Group) -> None:
        """Add the blocks of the group that follows."""
        self.blocks += following.blocks
        self.words += following.words
        self.path = _common_path(self.path, following.path)


def passage_id(arxiv_id: str, anchor: str, part: int) -> str:
    """UUIDv5 of a passage: `part` counts the passages of a paper that begin at the same anchor,
    from 0.

    The separator cannot occur in an id, so no two triples give the same name.
    """
    return str(uuid.uuid5(NAMESPACE, f"{arxiv_id}\x1f{anchor}\x1f{part}"))


def with_ids(arxiv_id: str, passages: Iterable[TextBlock]) -> Iterator[tuple[str, TextBlock]]:
    """The passages of a paper, each with its id."""
    parts: Counter[str] = Counter()
    for passage in passages:
        yield passage_id(arxiv_id, passage.anchor, parts[passage.anchor]), passage
        parts[passage.anchor] += 1


def pack(paper: Mapping[str, Any]) -> list[TextBlock]:
    """The passages of one row of the `papers` table, in document order, front matter first.

    Every block is in one of them, or its parts in several. Short text before the first section,
    such as a note on the authors, goes with the front matter.
    """
    groups: list[_Group] = []
    for _, section in groupby(_split_blocks(paper["blocks"]), key=attrgetter("section_path")):
        groups += _absorb(_join_blocks(section), _is_absorbed)
    groups = _absorb(groups, _is_absorbed_across_sections)
    notes = (
        groups.pop(0).blocks
        if groups and not groups[0].path and groups[0].words < FEWEST_WORDS
        else []
    )
    abstract = [
        TextBlock("abstract", "abstract", ("Abstract",), part, (), words)
        for part, words in split_text(paper["abstract"] or "", MOST_WORDS)
        if part
    ]
    return [*_front_matter(paper, notes), *abstract, *map(_passage, groups)]


def _front_matter(paper: Mapping[str, Any], notes: Sequence[TextBlock]) -> list[TextBlock]:
    """Authors, affiliations, title, date and categories, a topic of arXivBot's questions, in a
    passage of their own.
    """
    authors = "; ".join(map(_describe_author, paper["authors"]))
    date = month_name(month_of(paper["arxiv_id"]) or "")
    lines = [
        paper["title"],
        f"Authors: {authors}" if authors else "",
        f"arXiv:{paper['arxiv_id']} ({date}), categories {', '.join(paper['categories'])}",
        _join_texts(notes, ()),
    ]
    text = "\n".join(line for line in lines if line)
    keys = _cited_keys(notes)
    return [
        TextBlock("front_matter", "front_matter", (), part, _keys_in(part, keys), words)
        for part, words in split_lines(text, MOST_WORDS)
    ]


def _describe_author(author: Mapping[str, Any]) -> str:
    places = ", ".join([*author["affiliations"], *author["emails"]])
    return f"{author['name']} ({places})" if places else str(author["name"])


def _split_blocks(blocks: Iterable[Mapping[str, Any]]) -> Iterator[TextBlock]:
    """The blocks of a paper that hold text, those above MOST_WORDS in parts."""
    for block in blocks:
        kind, anchor, text = block["kind"], block["anchor"], block["text"]
        path, keys = tuple(block["section_path"]), tuple(block["cited_keys"])
        for part, count in _SPLITTERS.get(kind, split_text)(text, MOST_WORDS):
            if count or part.strip():
                cited = keys if part == text else _keys_in(part, keys)
                words = count if len(part) <= MOST_CHARACTERS else _NOT_JOINED
                yield TextBlock(kind, anchor, path, part, cited, words)


def _keys_in(part: str, keys: tuple[str, ...]) -> tuple[str, ...]:
    """Those of a block's keys that a part of it cites."""
    if not keys:
        return keys
    cited = {key.strip() for key, end in _KEY.findall(part) if end}
    return tuple(key for key in keys if key in cited)


def _join_blocks(section: Iterable[TextBlock]) -> list[_Group]:
    groups: list[_Group] = []
    for block in section:
        if groups and _continues(groups[-1], block):
            groups[-1].add(block)
        else:
            groups.append(_Group(block))
    return groups


def _continues(group: _Group, block: TextBlock) -> bool:
    """Whether a block continues a group: prose after prose, a list that was announced, a proof
    after its theorem.

    A footnote stays with the paragraph that it belongs to, so that no passage opens with one while
    there is room.
    """
    kind, last = block.kind, group.blocks[-1]
    if kind == "footnote":
        return last.kind in _PROSE and group.words + block.words <= MOST_WORDS
    if group.words + block.words > TARGET_WORDS:
        return False
    if kind == "paragraph":
        return last.kind in _PROSE and group.blocks[0].kind == "paragraph"
    if kind == "list":
        return last.kind == "paragraph" and last.text.endswith(":")
    return (
        kind == last.kind == "theorem"
        and block.text.startswith("Proof")
        and not last.text.startswith("Proof")
    )


def _absorb(
    groups: list[_Group], is_absorbed: Callable[[_Group, _Group, _Group | None], bool]
) -> list[_Group]:
    """Merge a group into the one before where `is_absorbed(before, group, after)` says so."""
    if all(group.words >= FEWEST_WORDS for group in groups):
        return groups
    result: list[_Group] = []
    for group, following in zip(groups, [*groups[1:], None], strict=True):
        if result and is_absorbed(result[-1], group, following):
            result[-1].merge(group)
        else:
            result.append(group)
    return result


def _is_absorbed(left: _Group, group: _Group, following: _Group | None) -> bool:
    """Whether one of two neighbours in a section is under FEWEST_WORDS; one that ends in a colon
    goes with the next.
    """
    if left.words + group.words > MOST_WORDS:
        return False
    if left.words < FEWEST_WORDS:
        return True
    if group.words >= FEWEST_WORDS:
        return False
    announces = group.blocks[-1].text.endswith(":")
    return not (announces and following is not None and group.words + following.words <= MOST_WORDS)


def _is_absorbed_across_sections(left: _Group, group: _Group, following: _Group | None) -> bool:
    """Whether one of two sections is under FEWEST_WORDS and they share a section above them.

    A short section goes with the neighbour with which it shares most of its path: the sentence that
    opens a section with its first subsection. Two sections of the first depth stay apart.
    """
    if (left.words >= FEWEST_WORDS and group.words >= FEWEST_WORDS) or not _fit_one_passage(
        left, group
    ):
        return False
    if left.words < FEWEST_WORDS or following is None or not _fit_one_passage(group, following):
        return True
    return len(_common_path(left.path, group.path)) >= len(_common_path(group.path, following.path))


def _fit_one_passage(left: _Group, right: _Group) -> bool:
    """Whether two groups share a section and fit into one passage, headings included."""
    path = _common_path(left.path, right.path)
    if not path or left.words + right.words > MOST_WORDS:
        return False
    return count_words(_join_texts([*left.blocks, *right.blocks], path)) <= MOST_WORDS


def _common_path(left: tuple[str, ...], right: tuple[str, ...]) -> tuple[str, ...]:
    """The beginning that two section paths share."""
    return tuple(
        title
        for title, _ in takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False))
    )


def _passage(group: _Group) -> TextBlock:
    first = group.blocks[0]
    if len(group.blocks) == 1 and first.kind != "footnote":
        return first
    text = _join_texts(group.blocks, group.path)
    has_headings = any(block.section_path != group.path for block in group.blocks)
    words = count_words(text) if has_headings else group.words
    kind, keys = _main_kind(group.blocks), _cited_keys(group.blocks)
    return TextBlock(kind, first.anchor, group.path, text, keys, words)


def _main_kind(blocks: Sequence[TextBlock]) -> str:
    """The kind that most of the words belong to; a footnote counts as a paragraph."""
    words: Counter[str] = Counter()
    for block in blocks:
        words["paragraph" if block.kind == "footnote" else block.kind] += block.words
    return max(words, key=words.__getitem__)


def _cited_keys(blocks: Sequence[TextBlock]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(key for block in blocks for key in block.cited_keys))


def _join_texts(blocks: Sequence[TextBlock], path: tuple[str, ...]) -> str:
    """The texts of blocks, with titles below `path` above each section's first block."""
    parts, current = [], path
    for block in blocks:
        heading = (
            " > ".join(block.section_path[len(path) :]) if block.section_path != current else ""
        )
        parts.append(f"{heading}\n{block.text}" if heading else block.text)
        current = block.section_path
    return "\n\n".join(parts)
