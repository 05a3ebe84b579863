"""Packing a paper's blocks into passages of 20 to 300 words. Not here: the blocks, and the table they go to.

Neighbouring paragraphs of one section are joined while they stay within TARGET_WORDS; tables, captions, lists,
theorems and algorithms stand alone unless they are too short to be found by themselves.
"""

from __future__ import annotations

import re
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from pipeline.passages.split import split_lines, split_table, split_text
from pipeline.passages.text import count_words

FEWEST_WORDS, MOST_WORDS = 20, 300
# WikiChat packs neighbours under 200 tokens of BGE-M3; 200 words keep most paragraphs of a paper whole.
TARGET_WORDS = 200
NAMESPACE = uuid.UUID("6f1d3f3e-6f0b-5c0e-9a53-2f7c5d1c8a41")

_STANDALONE = {"table", "caption", "list", "theorem", "algorithm"}
_SPLITTERS = {"table": split_table, "list": split_lines, "theorem": split_lines, "algorithm": split_lines}


@dataclass(frozen=True, slots=True)
class Passage:
    """One passage. `section_path` holds titles, outermost first; `anchor` is the id of its first element."""

    kind: str
    anchor: str
    section_path: tuple[str, ...]
    text: str
    cited_keys: tuple[str, ...] = ()

    @property
    def words(self) -> int:
        return count_words(self.text)


def passage_id(arxiv_id: str, anchor: str, part: int) -> str:
    """UUIDv5 of a passage: `part` counts the passages of a paper that begin at the same anchor, from 0.

    The separator cannot occur in an id, so no two triples give the same name.
    """
    return str(uuid.uuid5(NAMESPACE, f"{arxiv_id}\x1f{anchor}\x1f{part}"))


def pack(paper: Mapping[str, Any]) -> list[Passage]:
    """The passages of one row of the `papers` table, in document order, front matter first."""
    passages = [*_front_matter(paper), *_abstract(paper)]
    blocks = [_passage_of(block) for block in paper["blocks"] if block["text"].strip()]
    for _, section in groupby(blocks, key=lambda block: block.section_path):
        passages.extend(_pack_section(section))
    return passages


def with_ids(arxiv_id: str, passages: Iterable[Passage]) -> Iterator[tuple[str, Passage]]:
    """Each passage with its id."""
    parts: Counter[str] = Counter()
    for passage in passages:
        yield passage_id(arxiv_id, passage.anchor, parts[passage.anchor]), passage
        parts[passage.anchor] += 1


def _front_matter(paper: Mapping[str, Any]) -> list[Passage]:
    """Who wrote it, where they work, what and when: arXivBot's known misses are questions on just these."""
    authors = "; ".join(_author(author) for author in paper["authors"])
    facts = [
        paper["title"],
        f"Authors: {authors}" if authors else "",
        f"arXiv:{paper['arxiv_id']} ({paper['year']}), categories {', '.join(paper['categories'])}",
    ]
    text = "\n".join(fact for fact in facts if fact)
    return [Passage("front_matter", "front_matter", (), part) for part in split_text(text, MOST_WORDS)]


def _author(author: Mapping[str, Any]) -> str:
    places = ", ".join([*author["affiliations"], *author["emails"]])
    return f"{author['name']} ({places})" if places else str(author["name"])


def _abstract(paper: Mapping[str, Any]) -> list[Passage]:
    parts = split_text(paper["abstract"], MOST_WORDS) if paper["abstract"] else []
    return [Passage("abstract", "abstract", ("Abstract",), part) for part in parts]


def _passage_of(block: Mapping[str, Any]) -> Passage:
    kind = "paragraph" if block["kind"] == "footnote" else block["kind"]
    return Passage(kind, block["anchor"], tuple(block["section_path"]), block["text"], tuple(block["cited_keys"]))


def _pack_section(blocks: Iterable[Passage]) -> list[Passage]:
    packed: list[Passage] = []
    for piece in (part for block in blocks for part in _split(block)):
        if packed and _belong_together(packed[-1], piece):
            packed[-1] = _join(packed[-1], piece)
        else:
            packed.append(piece)
    return _absorb_short(packed)


def _split(block: Passage) -> list[Passage]:
    if block.words <= MOST_WORDS:
        return [block]
    split = _SPLITTERS.get(block.kind, split_text)
    return [replace(block, text=part, cited_keys=_cited(part, block)) for part in split(block.text, MOST_WORDS)]


def _cited(part: str, block: Passage) -> tuple[str, ...]:
    return tuple(key for key in block.cited_keys if re.search(rf"@{re.escape(key)}[;\]]", part))


def _belong_together(left: Passage, right: Passage) -> bool:
    prose = left.kind not in _STANDALONE and right.kind not in _STANDALONE
    return prose and left.words + right.words <= TARGET_WORDS


def _absorb_short(packed: Sequence[Passage]) -> list[Passage]:
    """Join what is under FEWEST_WORDS to the passage before it, or after it; alone in its section, it stays."""
    result: list[Passage] = []
    for passage in packed:
        short = passage.words < FEWEST_WORDS or (bool(result) and result[-1].words < FEWEST_WORDS)
        if result and short and result[-1].words + passage.words <= MOST_WORDS:
            result[-1] = _join(result[-1], passage)
        else:
            result.append(passage)
    return result


def _join(left: Passage, right: Passage) -> Passage:
    longer = left if left.words >= right.words else right
    keys = dict.fromkeys((*left.cited_keys, *right.cited_keys))
    return replace(left, kind=longer.kind, text=f"{left.text}\n\n{right.text}", cited_keys=tuple(keys))
