"""Search for the passages of a query, their listwise ranking by a model, and records of papers."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import islice

from pipeline.answering.model_calls import PROMPTS, TEMPERATURE, StepLog, Tools, passage_trace
from pipeline.corpus.nouns import Passage
from pipeline.index.scored import Scored
from pipeline.llm.context import cut_to_share
from pipeline.llm.messages import Spent, spent
from pipeline.text import one_line

# RankGPT's windows, as WikiChat uses them.
WINDOW, STEP, PASSAGE_CHARS = 20, 10, 400
# `[12] > ` is five or six tokens; WikiChat allows 120 for its 20.
_TOKENS_PER_RANK = 6
_MARKED_NUMBER = re.compile(r"\[\s*([0-9]{1,9})\s*\]")
_BARE_NUMBER = re.compile(r"(?<![\w.])[0-9]{1,9}(?![\w.]*\w)")


async def search(
    tools: Tools,
    steps: StepLog,
    query: str,
    *,
    hop: int = 1,
    without: Collection[str] = frozenset(),
    papers: Sequence[str] = (),
    most: int | None = None,
) -> list[Scored[Passage]]:
    """The passages for a query, best first; step `search`.

    without: ids of passages to leave out. papers: arXiv ids of the only papers; all for none.
    most: passages at most; None for CITELOOM_ANSWER_CANDIDATES.
    """
    count = most or tools.settings.answer_candidates
    (ranking,) = await tools.retriever.find([query], count + len(without), papers)
    by_id: dict[str, Scored[Passage]] = {}
    for scored in ranking:
        if scored.item.passage_id not in without:
            by_id.setdefault(scored.item.passage_id, scored)
    candidates = dict(islice(by_id.items(), count))
    steps.add("search", Spent(), hop=hop, query=query, found=list(candidates))
    return list(candidates.values())


async def find_records(tools: Tools, steps: StepLog, question: str) -> list[Passage]:
    """The records of the papers and authors that a question names; step `records` if there are
    any.
    """
    records = await tools.retriever.records(question)
    if records:
        steps.add("records", Spent(), shown=[passage_trace(record) for record in records])
    return records


async def rank(
    tools: Tools, steps: StepLog, query: str, passages: Sequence[Passage], *, hop: int = 1
) -> list[Passage]:
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
        longest = _TOKENS_PER_RANK * (end - start)
        values = {"question": query, "count": end - start}
        room = PROMPTS.room(
            tools.settings.llm_context, longest, "rank", shown=[""] * (end - start), **values
        )
        beginnings = [
            f"{passage.heading()}\n{one_line(passage.content())[:PASSAGE_CHARS]}"
            for passage in order[start:end]
        ]
        shown, cut = cut_to_share(beginnings, room)
        completion = await tools.model.complete(
            PROMPTS.messages("rank", shown=shown, **values),
            temperature=TEMPERATURE,
            max_tokens=longest,
        )
        numbers, missing = read_ranking(completion.text, end - start)
        order[start:end] = [order[start + number - 1] for number in numbers]
        cost += spent([completion])
        rankings.append(
            {"from": start + 1, "to": end, "cut": cut, "order": numbers, "missing": missing}
        )
    steps.add("rank", cost, hop=hop, windows=rankings)
    return order[:most]


def windows(count: int) -> list[tuple[int, int]]:
    """Start and end of the windows over a list of `count`, from its end to its beginning."""
    spans = [(max(count - WINDOW, 0), count)]
    while spans[-1][0] > 0:
        start, end = spans[-1]
        spans.append((max(start - STEP, 0), end - STEP))
    return spans


def read_ranking(text: str, count: int) -> tuple[list[int], list[int]]:
    """The order of the passages 1 to `count` in an answer, `[2] > [1]` or `2 > 1`, and the numbers
    that it lacks.

    Numbers without a passage are dropped, of a repeated one the first place counts, and passages
    that are not named follow in the order of retrieval.
    """
    numbers = [int(number) for number in _MARKED_NUMBER.findall(text) or _BARE_NUMBER.findall(text)]
    ranked = list(dict.fromkeys(number for number in numbers if 1 <= number <= count))
    missing = [number for number in range(1, count + 1) if number not in ranked]
    return [*ranked, *missing], missing
