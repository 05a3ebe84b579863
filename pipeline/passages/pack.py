"""Packing a paper's blocks into passages of 20 to 300 words.

Neighbouring paragraphs of one section are joined while they stay within TARGET_WORDS; tables, captions, lists,
theorems and algorithms stand alone unless they are too short to be found by themselves, or belong to what is before.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

from pipeline.arxiv.identifiers import month_of
from pipeline.passages.split import split_lines, split_table, split_text
from pipeline.passages.text import count_words
from pipeline.wikipedia.ids import is_page

FEWEST_WORDS, MOST_WORDS = 20, 300
# WikiChat packs neighbours under 200 tokens of BGE-M3; 200 words keep most paragraphs of a paper whole.
TARGET_WORDS = 200
NAMESPACE = uuid.UUID("6f1d3f3e-6f0b-5c0e-9a53-2f7c5d1c8a41")

_PROSE = {"paragraph", "footnote"}
_SPLITTERS = {"table": split_table, "list": split_lines, "theorem": split_lines, "algorithm": split_lines}
_KEY = re.compile(r"@([^;\[\]]+)[;\]]")
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip


class Block(NamedTuple):
    """A block of a paper, or a part of one: an item of `papers.blocks`, with its words."""

    kind: str
    anchor: str
    section_path: tuple[str, ...]
    text: str
    cited_keys: tuple[str, ...]
    words: int


class Passage(NamedTuple):
    """One passage. `section_path` holds titles, outermost first; `anchor` is the id of its first element."""

    kind: str
    anchor: str
    section_path: tuple[str, ...]
    text: str
    cited_keys: tuple[str, ...]
    words: int


class _Group:
    """Blocks that become one passage. `path` is what their section paths begin with alike."""

    __slots__ = ("blocks", "path", "words")

    def __init__(self, block: Block) -> None:
        self.blocks, self.path, self.words = [block], block.section_path, block.words

    def add(self, block: Block) -> None:
        """Take one more block of the same section."""
        self.blocks.append(block)
        self.words += block.words

    def take(self, other: _Group) -> None:
        """Take the blocks of the group that follows."""
        self.blocks += other.blocks
        self.words += other.words
        self.path = _common(self.path, other.path)


def passage_id(arxiv_id: str, anchor: str, part: int) -> str:
    """UUIDv5 of a passage: `part` counts the passages of a paper that begin at the same anchor, from 0.

    The separator cannot occur in an id, so no two triples give the same name. By RFC 9562 and not by `uuid.uuid5`,
    whose object costs more than the digest.
    """
    name = f"{arxiv_id}\x1f{anchor}\x1f{part}".encode()
    digest = hashlib.sha1(NAMESPACE.bytes + name, usedforsecurity=False).hexdigest()
    variant = "89ab"[int(digest[16], 16) & 3]
    return f"{digest[:8]}-{digest[8:12]}-5{digest[13:16]}-{variant}{digest[17:20]}-{digest[20:32]}"


def pack(paper: Mapping[str, Any]) -> list[Passage]:
    """The passages of one row of the `papers` table, in document order, front matter first.

    Every block is in one of them, or its parts in several. Short text that stands before the first section, such as a
    note on the authors, goes with the front matter. A page of Wikipedia has none.
    """
    groups = _groups(paper["blocks"])
    if is_page(paper["arxiv_id"]):
        return [*map(_passage, groups)]
    notes = [groups.pop(0)] if groups and not groups[0].path and groups[0].words < FEWEST_WORDS else []
    return [*_front_matter(paper, notes), *_abstract(paper), *map(_passage, groups)]


def with_ids(arxiv_id: str, passages: Iterable[Passage]) -> Iterator[tuple[str, Passage]]:
    """Each passage with its id."""
    parts: Counter[str] = Counter()
    for passage in passages:
        yield passage_id(arxiv_id, passage.anchor, parts[passage.anchor]), passage
        parts[passage.anchor] += 1


def _front_matter(paper: Mapping[str, Any], notes: Sequence[_Group]) -> list[Passage]:
    """Who wrote it, where they work, what and when: arXivBot's known misses are questions on just these."""
    authors = "; ".join(map(_author, paper["authors"]))
    facts = [
        paper["title"],
        f"Authors: {authors}" if authors else "",
        f"arXiv:{paper['arxiv_id']} ({_date(paper)}), categories {', '.join(paper['categories'])}",
        *(_text(note.blocks, note.path) for note in notes),
    ]
    text = "\n".join(fact for fact in facts if fact)
    keys = tuple(key for note in notes for key in _keys(note.blocks))
    parts = split_lines(text, MOST_WORDS)
    return [Passage("front_matter", "front_matter", (), part, _cited(part, keys), words) for part, words in parts]


def _author(author: Mapping[str, Any]) -> str:
    places = ", ".join([*author["affiliations"], *author["emails"]])
    return f"{author['name']} ({places})" if places else str(author["name"])


def _date(paper: Mapping[str, Any]) -> str:
    month = month_of(paper["arxiv_id"])
    return f"{_MONTHS[int(month[5:]) - 1]} {month[:4]}" if month else str(paper["year"])


def _abstract(paper: Mapping[str, Any]) -> list[Passage]:
    parts = split_text(paper["abstract"], MOST_WORDS) if paper["abstract"] else []
    return [Passage("abstract", "abstract", ("Abstract",), part, (), words) for part, words in parts]


def _groups(blocks: Iterable[Mapping[str, Any]]) -> list[_Group]:
    groups: list[_Group] = []
    for _, section in groupby(_split_blocks(blocks), key=attrgetter("section_path")):
        groups += _absorb(_pack(section), _is_absorbed)
    return _absorb(groups, _is_absorbed_across)


def _split_blocks(blocks: Iterable[Mapping[str, Any]]) -> Iterator[Block]:
    for block in blocks:
        kind, anchor, text = block["kind"], block["anchor"], block["text"]
        path, keys = tuple(block["section_path"]), tuple(block["cited_keys"])
        words = count_words(text)
        if words > MOST_WORDS:
            for part, count in _SPLITTERS.get(kind, split_text)(text, MOST_WORDS):
                yield Block(kind, anchor, path, part, _cited(part, keys), count)
        elif words or text.strip():
            yield Block(kind, anchor, path, text, keys, words)


def _cited(part: str, keys: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the keys that a part of their block cites."""
    if not keys:
        return keys
    found = {key.strip() for key in _KEY.findall(part)}
    return tuple(key for key in keys if key in found)


def _pack(section: Iterable[Block]) -> list[_Group]:
    groups: list[_Group] = []
    for block in section:
        if groups and _belong_together(groups[-1], block):
            groups[-1].add(block)
        else:
            groups.append(_Group(block))
    return groups


def _belong_together(group: _Group, block: Block) -> bool:
    """Whether a block goes on where the group ends: prose after prose, a list announced, a proof of what is stated.

    A footnote stays with the paragraph that it belongs to, so that no passage opens with one while there is room.
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
    return kind == last.kind == "theorem" and block.text.startswith("Proof") and not last.text.startswith("Proof")


def _absorb(groups: list[_Group], is_absorbed: Callable[[_Group, _Group, _Group | None], bool]) -> list[_Group]:
    """Join groups to those before them: `is_absorbed` tells by the group before, the group, and the one after it."""
    if all(group.words >= FEWEST_WORDS for group in groups):
        return groups
    result: list[_Group] = []
    for group, following in zip(groups, [*groups[1:], None], strict=True):
        if result and is_absorbed(result[-1], group, following):
            result[-1].take(group)
        else:
            result.append(group)
    return result


def _is_absorbed(left: _Group, group: _Group, following: _Group | None) -> bool:
    """Join what is under FEWEST_WORDS to what is before it, or after it where nothing is or it ends in a colon."""
    if left.words + group.words > MOST_WORDS:
        return False
    if left.words < FEWEST_WORDS:
        return True
    if group.words >= FEWEST_WORDS:
        return False
    announces = group.blocks[-1].text.endswith(":")
    return not (announces and following is not None and group.words + following.words <= MOST_WORDS)


def _is_absorbed_across(left: _Group, group: _Group, following: _Group | None) -> bool:
    """Join a section that is under FEWEST_WORDS to the one with which it shares most of its path, if any.

    So the sentence that opens a section goes with its first subsection. Two sections of the first depth stay apart.
    """
    if (left.words >= FEWEST_WORDS and group.words >= FEWEST_WORDS) or not _fit(left, group):
        return False
    if left.words < FEWEST_WORDS or following is None or not _fit(group, following):
        return True
    return len(_common(left.path, group.path)) >= len(_common(group.path, following.path))


def _fit(left: _Group, right: _Group) -> bool:
    """Whether two groups share a section and make one passage, their headings counted."""
    path = _common(left.path, right.path)
    if not path or left.words + right.words > MOST_WORDS:
        return False
    return count_words(_text([*left.blocks, *right.blocks], path)) <= MOST_WORDS


def _common(left: tuple[str, ...], right: tuple[str, ...]) -> tuple[str, ...]:
    """What two section paths begin with alike."""
    if left == right:
        return left
    shared = next((place for place, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), None)
    return left[:shared] if shared is not None else min(left, right, key=len)


def _passage(group: _Group) -> Passage:
    first = group.blocks[0]
    if len(group.blocks) == 1:
        return Passage(_kind(group.blocks), first.anchor, first.section_path, first.text, first.cited_keys, first.words)
    text = _text(group.blocks, group.path)
    words = group.words if group.path == first.section_path == group.blocks[-1].section_path else count_words(text)
    return Passage(_kind(group.blocks), first.anchor, group.path, text, _keys(group.blocks), words)


def _kind(blocks: Sequence[Block]) -> str:
    """The kind that most of the words are of; a footnote counts as a paragraph."""
    words: dict[str, int] = {}
    for block in blocks:
        kind = "paragraph" if block.kind == "footnote" else block.kind
        words[kind] = words.get(kind, 0) + block.words
    return max(words, key=words.__getitem__)


def _keys(blocks: Sequence[Block]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(key for block in blocks for key in block.cited_keys))


def _text(blocks: Sequence[Block], path: tuple[str, ...]) -> str:
    """The blocks' text; over what stands deeper than `path`, the titles that `path` does not tell."""
    parts, current = [], path
    for block in blocks:
        heading = " > ".join(block.section_path[len(path) :]) if block.section_path != current else ""
        parts.append(f"{heading}\n{block.text}" if heading else block.text)
        current = block.section_path
    return "\n\n".join(parts)
