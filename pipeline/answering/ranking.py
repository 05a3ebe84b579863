"""Listwise ranking of passages by a model, over a window that slides from the end of the list to its beginning.

WikiChat's way, which is RankGPT's (arXiv 2304.09542): windows of 20 that overlap by 10, 400 characters of a passage,
answers like `[2] > [1]`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.answering.prompting import NOTHING, PROMPTS, TEMPERATURE, room, shared
from pipeline.answering.retrieving import Found
from pipeline.llm.client import LlmClient, Spent, spent

WINDOW, STEP, PASSAGE_CHARS = 20, 10, 400
# `[12] > ` is five or six tokens; WikiChat allows 120 for its 20.
_TOKENS_PER_PLACE = 6
_MARKED = re.compile(r"\[\s*([0-9]{1,9})\s*\]")
_BARE = re.compile(r"(?<![\w.])[0-9]{1,9}(?![\w.]*\w)")


@dataclass(frozen=True, slots=True)
class Ranking:
    """An order of the passages 1 to n, each once, and what had to be mended in the answer for that."""

    order: tuple[int, ...]
    unknown: int = 0
    """Numbers that no passage has: dropped."""
    repeated: int = 0
    """Passages named again: the first place counts."""
    missing: tuple[int, ...] = ()
    """Passages that were not named: they stand behind the others, in the order of retrieval."""

    def trace(self) -> dict[str, Any]:
        mended = {"unknown": self.unknown, "repeated": self.repeated, "missing": list(self.missing)}
        return {"order": list(self.order)} | mended


@dataclass(frozen=True, slots=True)
class Ranked:
    """Passages best first; `rankings`: of each window, with the places that it spans."""

    found: tuple[Found, ...]
    spent: Spent = NOTHING
    rankings: tuple[dict[str, Any], ...] = ()


def read_ranking(text: str, count: int) -> Ranking:
    """The order that an answer gives the passages 1 to `count`; one that names none leaves them as they were.

    Numbers in brackets count; where there are none, numbers by themselves (`2 > 1`) do.
    """
    named = [int(number) for number in _MARKED.findall(text) or _BARE.findall(text)]
    known = [number for number in named if 1 <= number <= count]
    first = tuple(dict.fromkeys(known))
    missing = tuple(number for number in range(1, count + 1) if number not in first)
    return Ranking((*first, *missing), len(named) - len(known), len(known) - len(first), missing)


def windows(count: int) -> list[tuple[int, int]]:
    """Where the windows over a list of `count` begin and end, in the order in which they are ranked."""
    spans = [(max(count - WINDOW, 0), count)]
    while spans[-1][0] > 0:
        start, end = spans[-1]
        spans.append((max(start - STEP, 0), end - STEP))
    return spans


def planned_windows(found: int, wanted: int) -> int:
    """Calls that ranking so many passages takes: none where all of them are wanted."""
    return len(windows(found)) if found > wanted else 0


async def rank(client: LlmClient, query: str, found: Sequence[Found], wanted: int, context: int) -> Ranked:
    """The passages ranked for a query, at temperature 0; where no more than `wanted` there are, nothing is asked."""
    if len(found) <= wanted:
        return Ranked(tuple(found))
    order, cost, rankings = list(found), NOTHING, []
    for start, end in windows(len(found)):
        ranking, paid, cut = await _rank_window(client, query, order[start:end], context)
        order[start:end] = [order[start + number - 1] for number in ranking.order]
        cost += paid
        rankings.append({"from": start + 1, "to": end, "cut": cut} | ranking.trace())
    return Ranked(tuple(order), cost, tuple(rankings))


async def _rank_window(
    client: LlmClient, query: str, found: Sequence[Found], context: int
) -> tuple[Ranking, Spent, bool]:
    longest = _TOKENS_PER_PLACE * len(found)
    frame = {"question": query, "count": len(found)}
    left = room(context, longest, "rank", shown=[""] * len(found), **frame)
    shown, cut = shared([_gist(each) for each in found], left)
    messages = PROMPTS.messages("rank", shown=shown, **frame)
    given = await client.complete(messages, temperature=TEMPERATURE, max_tokens=longest)
    return read_ranking(given.text, len(found)), spent([given]), cut


def _gist(found: Found) -> str:
    """Heading and beginning of a passage, in one line each."""
    return f"{found.heading()}\n{' '.join(found.content().split())[:PASSAGE_CHARS]}"
