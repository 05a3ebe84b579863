"""arXivBot: search, rank, extract claims, reflect, search again, and answer from the claims alone.

The stages are those of the arXivBot report (Tang, Stanford CS224N, 2024; its Figure 2), with any number of hops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pipeline.answering.answer import Answer, Claim, Fact, StepLog, grounded_answer, number_claims
from pipeline.answering.claim_extraction import Source, attribute, extract_claims
from pipeline.answering.composition import compose
from pipeline.answering.facts import fact_claims
from pipeline.answering.model_calls import CHARS_PER_TOKEN, NOTHING, PROMPTS, ask, short_question
from pipeline.answering.retrieval import (
    QUERY_CHARS,
    RetrievedPassage,
    distinct_passages,
    find,
    rank,
    searchable,
    suspicious_ids,
)
from pipeline.answering.tools import Tools
from pipeline.answering.user_question import UserQuestion, plan_query
from pipeline.llm.client import REPAIR_TOKENS, LlmClient, Spent
from pipeline.llm.context import first_that_fit
from pipeline.llm.structured import AnswerForm, AtMost

THOUGHT_CHARS = 400
_REFLECTION_TOKENS = 48 + int((THOUGHT_CHARS + QUERY_CHARS) / CHARS_PER_TOKEN)


class Thought(AnswerForm):
    """The reasoning comes first, so that the decision and the query follow from it."""

    reasoning: Annotated[str, AtMost(THOUGHT_CHARS)]
    enough: bool
    query: Annotated[str, AtMost(QUERY_CHARS)]


@dataclass(frozen=True, slots=True)
class Reflection:
    """The decision whether another hop follows: its query, or None.

    There is none after an answer that cannot be read, or one that misses something and names no query (`silent`).
    """

    query: str | None
    reasoning: str
    enough: bool | None
    repeated: bool
    """Whether an earlier hop had the same query: the next one then reads further in its results."""
    spent: Spent
    failure: str | None = None

    def trace(self) -> dict[str, Any]:
        return {
            "enough": self.enough,
            "reasoning": self.reasoning,
            "query": self.query,
            "silent": self.enough is False and self.query is None,
            "repeated": self.repeated,
            "failure": self.failure,
        }


async def reflect(
    client: LlmClient, question: str, queries: Sequence[str], claims: Sequence[Claim], context: int
) -> Reflection:
    """Whether these claims are enough, else the query for what is missing; chain of thought at temperature 0."""
    values = {
        "question": short_question(question, context),
        "queries": "\n".join(queries),
        "characters": THOUGHT_CHARS,
    }
    left = PROMPTS.room(context, _REFLECTION_TOKENS + REPAIR_TOKENS, "reflect", claims="", **values)
    lines = first_that_fit([claim.line() for claim in claims], left)
    messages = PROMPTS.messages("reflect", claims="\n".join(lines), **values)
    answer = await ask(client, messages, Thought, _REFLECTION_TOKENS)
    if answer.value is None:
        return Reflection(None, "", None, False, answer.spent, answer.failure)
    thought = answer.value
    query = None if thought.enough else searchable(thought.query) or None
    repeated = query is not None and query.casefold() in {earlier.casefold() for earlier in queries}
    return Reflection(query, " ".join(thought.reasoning.split()), thought.enough, repeated, answer.spent)


class MultiHopSearch:
    """The hops of one question: its queries, the passages read and the claims so far."""

    def __init__(self, tools: Tools, question: str, steps: StepLog) -> None:
        self._tools, self._params, self._question, self._steps = tools, tools.params, question, steps
        self.queries: list[str] = []
        self.passages: list[tuple[RetrievedPassage, ...]] = []
        """The passages read in each hop."""
        self.claims: list[Claim] = []

    async def hop(self, query: str) -> None:
        """Search once and take claims from the best passages; those of earlier hops are passed over."""
        self.queries.append(query)
        candidates = await self._search(query)
        ranked = await rank(self._tools.model, query, candidates, self._params.passages, self._params.context)
        best = ranked.passages[: self._params.passages]
        if ranked.rankings:
            self._steps.add("rank", ranked.spent, hop=self._hop, windows=list(ranked.rankings))
        facts = await self._facts(candidates, best) if self._hop == 1 else ()
        self.passages.append(tuple(distinct_passages([*best, *(passage for _, passage in facts)])))
        self._add_claims([(text, passage, "front_matter") for text, passage in facts])
        await self._extract(best, self._params.claims - len(facts))

    async def next_query(self) -> str | None:
        """The query of another hop, if the model asks for one."""
        reflection = await reflect(self._tools.model, self._question, self.queries, self.claims, self._params.context)
        self._steps.add("reflect", reflection.spent, hop=self._hop, **reflection.trace())
        return reflection.query

    @property
    def _hop(self) -> int:
        return len(self.queries)

    async def _search(self, query: str) -> list[RetrievedPassage]:
        read = {passage.passage_id for hop in self.passages for passage in hop}
        (results,) = await find(self._tools.retriever, [query], self._params.candidates + len(read))
        candidates = distinct_passages(results, without=read)[: self._params.candidates]
        ids = [passage.passage_id for passage in candidates]
        self._steps.add("search", NOTHING, hop=self._hop, query=query, found=ids)
        return candidates

    async def _facts(
        self, candidates: Sequence[RetrievedPassage], best: Sequence[RetrievedPassage]
    ) -> tuple[tuple[str, RetrievedPassage], ...]:
        """Claims from tables on authors, dates and categories, which leave room for one of the model's own."""
        if self._tools.facts is None:
            return ()
        most = max(self._params.claims - 1, 1)
        # A title may be that of any candidate; without one, the question is on the paper that ranks first.
        facts = await fact_claims(self._tools.facts, self._question, [*best, *candidates], most)
        if facts:
            self._steps.add("facts", NOTHING, hop=self._hop, claims=[text for text, _ in facts])
        return facts

    async def _extract(self, best: Sequence[RetrievedPassage], most: int) -> None:
        extracted = await extract_claims(
            self._tools.model,
            self._question,
            best,
            most=most,
            known=[claim.text for claim in self.claims],
            context=self._params.context,
        )
        attribution = attribute(extracted.claims, self._question, self._sources(), first=len(self.claims) + 1)
        self._add_claims([(text, passage, "passage") for text, passage in attribution.claims])
        self._steps.add(
            "claims",
            extracted.spent,
            hop=self._hop,
            claims=[claim.number for claim in self.claims if claim.hop == self._hop],
            shown=[passage.trace() for passage in best],
            suspicious=suspicious_ids(best),
            texts=[text for text, _ in attribution.claims],
            **attribution.trace(),
            **extracted.trace(),
        )

    def _sources(self) -> list[Source]:
        """The passages read: front matter with claims from tables first, then the latest hop first."""
        known: dict[str, str] = {}
        for claim in self.claims:
            if claim.source == "front_matter":
                known[claim.passage_id] = f"{known.get(claim.passage_id, '')} {claim.text}"
        passages = [passage for hop in reversed(self.passages) for passage in hop]
        sources = [Source(passage, known.get(passage.passage_id, "")) for passage in passages]
        return sorted(sources, key=lambda source: not source.known)

    def _add_claims(self, facts: Sequence[Fact]) -> None:
        self.claims += number_claims(facts, self._hop, after=len(self.claims))


async def arxivbot(question: UserQuestion, tools: Tools) -> Answer:
    """The answer from claims on passages; it abstains if these do not hold it.

    Raises SettingError if the context is too small, and as the client and the retriever do.
    """
    params, steps = tools.params, StepLog(tools.on_step)
    first = await plan_query(tools.model, question, params.context)
    steps.add("query", first.spent, **first.trace())
    search = MultiHopSearch(tools, first.question, steps)
    query = first.query
    while query is not None:
        await search.hop(query)
        query = await search.next_query() if len(search.queries) < params.hops else None
    if not search.claims:
        steps.add("answer", NOTHING, abstained="no claims")
        return grounded_answer((), (), search.queries, search.passages, steps)
    composition = await compose(
        tools.model, "answer", first.question, search.claims, context=params.context, tokens=params.tokens
    )
    steps.add("answer", composition.spent, **composition.trace())
    return grounded_answer(composition.sentences, search.claims, search.queries, search.passages, steps)
