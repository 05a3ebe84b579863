"""Passages: search for them, ranking by a model, and signs of prompt injection in them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pipeline.answering.model_calls import PROMPTS, TEMPERATURE
from pipeline.answering.tools import StepLog, Tools
from pipeline.corpus.parse.policies import without_markers
from pipeline.llm.client import Completion, Spent, spent
from pipeline.llm.context import cut_to_share
from pipeline.llm.prompts import as_data
from pipeline.text import one_line

if TYPE_CHECKING:
    from pipeline.index.relevance import Relevance


# Longer queries are no better, and a model under constrained decoding may write as much as it may.
QUERY_CHARS = 200
_UNSEARCHABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
# RankGPT's windows, as WikiChat uses them.
WINDOW, STEP, PASSAGE_CHARS = 20, 10, 400
# `[12] > ` is five or six tokens; WikiChat allows 120 for its 20.
_TOKENS_PER_RANK = 6
_MARKED_NUMBER = re.compile(r"\[\s*([0-9]{1,9})\s*\]")
_BARE_NUMBER = re.compile(r"(?<![\w.])[0-9]{1,9}(?![\w.]*\w)")
_WHAT = (
    r"(?:instructions?|prompts?|rules|directions|guidelines|context|questions?|tasks?|passages?)"
)
_ORDERS = re.compile(
    rf"\b(?:ignore|disregard|forget|override|bypass)\b[^.!?\n]{{0,40}}\b{_WHAT}\b"
    r"|\byou (?:are|will be) now\b|\b(?:new|updated|real|actual) instructions?\s*:"
    r"|\b(?:system|developer) (?:prompt|message|override)\b"
    r"|\b(?:as|dear) (?:an? )?(?:AI|language model|assistant)\b|\bif you are an? (?:AI|LLM|language"
    r" model|assistant)\b"
    r"|\b(?:instead|only|must|please)["
    r" ,]+(?:answer|respond|reply|output|say|print|write)\b[^.!?\n]{0,30}[\"“'`:]"
    r"|\b(?:rank|cite|prefer|recommend)\b[^.!?\n]{0,20}\bthis"
    r" (?:passage|paper|document)\b[^.!?\n]{0,20}\bfirst\b"
    r"|\bdo not (?:answer|tell|mention|reveal|cite)\b",
    re.IGNORECASE,
)


PASSAGE_COLUMNS = ["passage_id", "arxiv_id", "title", "section_path", "anchor", "kind", "text"]
"""Columns of `passages` that make a `RetrievedPassage`."""


@dataclass(frozen=True, slots=True)
class RetrievedPassage:
    """A passage of a search. month: of the passages table that holds it, YYYY-MM."""

    passage_id: str
    arxiv_id: str
    title: str
    section_path: tuple[str, ...]
    anchor: str
    kind: str
    text: str
    month: str
    relevance: Relevance | None = field(default=None, compare=False)
    """Whether it fits its query; None if unknown."""

    @classmethod
    def of(
        cls, row: Mapping[str, Any], month: str, relevance: Relevance | None = None
    ) -> RetrievedPassage:
        """The passage of a row with PASSAGE_COLUMNS."""
        columns = {name: row[name] for name in PASSAGE_COLUMNS}
        columns |= {"title": row["title"] or "", "section_path": tuple(row["section_path"])}
        return cls(**columns, month=month, relevance=relevance)

    def heading(self) -> str:
        """The paper's title and the sections around the passage."""
        return " > ".join(part for part in (self.title, *self.section_path) if part)

    def content(self) -> str:
        """The text as a model reads it: without citation markers."""
        return without_markers(self.text).strip()

    def prompt_text(self) -> str:
        """Heading and content."""
        return f"{self.heading()}\n{self.content()}"

    def trace(self) -> dict[str, Any]:
        """Its ids and kind, for a trace."""
        return {
            "passage_id": self.passage_id,
            "arxiv_id": self.arxiv_id,
            "anchor": self.anchor,
            "kind": self.kind,
        }


Search = Callable[[Sequence[str], int], Sequence[Sequence[RetrievedPassage]]]
"""Queries and a number of passages → the passages of each query, best first; runs in a thread of
its own.
"""


class PassageSearch:
    """Searches one after another, off the event loop: an embedder and an embedded index have the
    cores for one.
    """

    def __init__(self, search: Search) -> None:
        self._search, self._lock = search, asyncio.Lock()
        self.seen: dict[str, RetrievedPassage] = {}
        """Every passage that was found, by id."""

    async def find(
        self, queries: Sequence[str], count: int
    ) -> Sequence[Sequence[RetrievedPassage]]:
        """For each query in order `count` passages, or as many as there are, best first; raises as
        the search does.

        No queries make no search.
        """
        if not queries:
            return []
        async with self._lock:
            results = await asyncio.to_thread(self._search, queries, count)
        self.seen.update(
            (passage.passage_id, passage) for passages in results for passage in passages
        )
        return results


async def search(
    tools: Tools, steps: StepLog, query: str, *, hop: int = 1, read: Collection[str] = frozenset()
) -> list[RetrievedPassage]:
    """The passages for a query, best first, at most CITELOOM_ANSWER_CANDIDATES; adds the step
    `search`.

    read: ids of passages to leave out.
    """
    count = tools.settings.answer_candidates
    (results,) = await tools.retriever.find([query], count + len(read))
    candidates = distinct_passages(results, without=read)[:count]
    ids = [passage.passage_id for passage in candidates]
    steps.add("search", Spent(), hop=hop, query=query, found=ids)
    return candidates


def distinct_passages(
    passages: Iterable[RetrievedPassage], without: Collection[str] = frozenset()
) -> list[RetrievedPassage]:
    """The passages in order, each id once. without: ids to leave out."""
    by_id: dict[str, RetrievedPassage] = {}
    for passage in passages:
        if passage.passage_id not in without:
            by_id.setdefault(passage.passage_id, passage)
    return list(by_id.values())


def searchable(text: str) -> str:
    """A text as a query: one line without control characters, cut at a word; may be empty."""
    line = one_line(_UNSEARCHABLE.sub(" ", text))
    if len(line) <= QUERY_CHARS:
        return line
    return line[: QUERY_CHARS + 1].rpartition(" ")[0] or line[:QUERY_CHARS]


def looks_like_prompt_injection(text: str) -> bool:
    """Whether a text has words that give orders to a model, or marks by which chat templates divide
    messages.

    For the trace only: a paper on prompt injection quotes such words, and is read all the same. The
    fence around every passage, and claims on retrieved passages alone, are what keeps them from
    doing harm.
    """
    return _ORDERS.search(text) is not None or as_data(text) != text


def suspicious_ids(passages: Iterable[RetrievedPassage]) -> list[str]:
    """Ids of the passages that look like prompt injection."""
    return [
        passage.passage_id
        for passage in passages
        if looks_like_prompt_injection(f"{passage.title}\n{passage.text}")
    ]


def read_ranking(text: str, count: int) -> tuple[list[int], list[int]]:
    """The order of the passages 1 to `count` in an answer, `[2] > [1]` or `2 > 1`, and the numbers
    that it lacks.

    Numbers without a passage are dropped, of a repeated one the first place counts, and passages
    that are not named follow in the order of retrieval.
    """
    numbers = [int(number) for number in _MARKED_NUMBER.findall(text) or _BARE_NUMBER.findall(text)]
    named = list(dict.fromkeys(number for number in numbers if 1 <= number <= count))
    missing = [number for number in range(1, count + 1) if number not in named]
    return [*named, *missing], missing


def windows(count: int) -> list[tuple[int, int]]:
    """Start and end of the windows over a list of `count`, from the end of the list to its
    beginning.
    """
    spans = [(max(count - WINDOW, 0), count)]
    while spans[-1][0] > 0:
        start, end = spans[-1]
        spans.append((max(start - STEP, 0), end - STEP))
    return spans


async def rank(
    tools: Tools, steps: StepLog, query: str, passages: Sequence[RetrievedPassage], *, hop: int = 1
) -> list[RetrievedPassage]:
    """The best passages for a query, at most CITELOOM_ANSWER_PASSAGES; adds the step `rank`.

    A model ranks listwise at temperature 0, in windows from the end of the list to its beginning:
    WikiChat's method, which is RankGPT's (arXiv 2304.09542). If there are no more passages than
    that, they are not ranked.
    """
    most = tools.settings.answer_passages
    order = list(passages)
    if len(order) <= most:
        return order
    cost, rankings = Spent(), []
    for start, end in windows(len(order)):
        completion, cut = await _rank_window(tools, query, order[start:end])
        numbers, missing = read_ranking(completion.text, end - start)
        order[start:end] = [order[start + number - 1] for number in numbers]
        cost += spent([completion])
        rankings.append(
            {"from": start + 1, "to": end, "cut": cut, "order": numbers, "missing": missing}
        )
    steps.add("rank", cost, hop=hop, windows=rankings)
    return order[:most]


async def _rank_window(
    tools: Tools, query: str, passages: Sequence[RetrievedPassage]
) -> tuple[Completion, bool]:
    """The model's ranking, and whether passages were cut for want of room."""
    longest = _TOKENS_PER_RANK * len(passages)
    values = {"question": query, "count": len(passages)}
    left = PROMPTS.room(
        tools.settings.llm_context, longest, "rank", shown=[""] * len(passages), **values
    )
    beginnings = [
        f"{passage.heading()}\n{one_line(passage.content())[:PASSAGE_CHARS]}"
        for passage in passages
    ]
    shown, cut = cut_to_share(beginnings, left)
    messages = PROMPTS.messages("rank", shown=shown, **values)
    return await tools.model.complete(messages, temperature=TEMPERATURE, max_tokens=longest), cut
