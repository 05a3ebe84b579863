"""arXivBot: search, rank, extract claims, reflect, search again, and answer from the claims alone.

The stages are those of the arXivBot report (Tang, Stanford CS224N, 2024; its Figure 2), with any
number of hops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from pipeline.answering.answer import MOST_CLAIMS, grounded_answer
from pipeline.answering.claim_extraction import extract_claims
from pipeline.answering.composition import compose
from pipeline.answering.model_calls import CHARS_PER_TOKEN, StepLog, Tools
from pipeline.answering.ranking import find_records, rank, search
from pipeline.answering.retriever import QUERY_CHARS, searchable
from pipeline.answering.system import READING, AnsweringSystem
from pipeline.answering.user_question import UserQuestion, plan_query
from pipeline.corpus.nouns import Answer, Claim, Passage
from pipeline.llm.context import first_that_fit
from pipeline.llm.structured import AnswerForm, AtMost
from pipeline.text import one_line

THOUGHT_CHARS = 400
_REFLECTION_TOKENS = 48 + int((THOUGHT_CHARS + QUERY_CHARS) / CHARS_PER_TOKEN)


class Thought(AnswerForm):
    """The reasoning comes first, so that the decision and the query follow from it."""

    reasoning: Annotated[str, AtMost(THOUGHT_CHARS)]
    enough: bool
    query: Annotated[str, AtMost(QUERY_CHARS)]


async def reflect(
    tools: Tools, steps: StepLog, question: str, queries: Sequence[str], claims: Sequence[Claim]
) -> str | None:
    """The query for missing claims, None if these are enough; chain of thought at temperature 0.

    There is none after an answer that finds claims missing and names no query (`silent`). Adds
    the step `reflect`.
    """
    values = {
        "question": tools.shorten(question),
        "queries": "\n".join(queries),
        "characters": THOUGHT_CHARS,
    }
    room = tools.room("reflect", _REFLECTION_TOKENS, claims="", **values)
    lines = first_that_fit([claim.line() for claim in claims], room)
    answer = await tools.ask(
        "reflect", Thought, _REFLECTION_TOKENS, claims="\n".join(lines), **values
    )
    thought = answer.value
    query = searchable(thought.query) if not thought.enough else ""
    steps.add(
        "reflect",
        answer.spent,
        hop=len(queries),
        enough=thought.enough,
        reasoning=one_line(thought.reasoning),
        query=query or None,
        silent=not thought.enough and not query,
    )
    return query or None


async def arxivbot(question: UserQuestion, tools: Tools) -> Answer:
    """The answer from claims on passages; it abstains if these do not hold it.

    Each hop searches once and takes claims from the best passages that no hop before has read; the
    first also from the records of the papers and authors that the question names, if the system
    reads them.

    Raises SettingError if the context is too small, and as the client and the retriever do.
    """
    steps = StepLog(tools.on_step)
    alone, query = await plan_query(tools, steps, question)
    records = await find_records(tools, steps, alone)
    queries: list[str] = []
    hops: list[list[Passage]] = []  # the passages read in each
    claims: list[Claim] = []
    while query is not None:
        queries.append(query)
        hop = len(queries)
        read_ids = {passage.passage_id for passages in (records, *hops) for passage in passages}
        ranking = await search(tools, steps, query, hop=hop, without=read_ids)
        candidates = [scored.item for scored in ranking]
        best = await rank(tools, steps, query, candidates, hop=hop)
        hops.append(best if hop > 1 else [*records, *best])
        claims += await extract_claims(
            tools, steps, alone, hops[-1], most=MOST_CLAIMS, earlier=claims, hops=hops
        )
        query = None
        if hop < tools.settings.answer_hops:
            query = await reflect(tools, steps, alone, queries, claims)
    sentences = await compose(tools, steps, "answer", alone, claims)
    return grounded_answer(sentences, claims, queries, hops, steps)


# As the report describes it: dense vectors alone rank, and only passages of a search are read.
ARXIVBOT = AnsweringSystem(
    name="arxivbot",
    answer=arxivbot,
    settings=(*READING, "answer_hops"),
    prompts=("query", "rank", "claims", "reflect", "answer"),
    version=2,
    search_by="dense",
)
ARXIVBOT_FUSED = replace(
    ARXIVBOT, name="arxivbot_fused", version=7, search_by="fused", reads_records=True
)
