"""arXivBot's reflection by chain of thought: is there enough, and if not, what is searched for next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict

from pipeline.answering.answered import Claim
from pipeline.answering.prompting import CHARS_PER_TOKEN, PROMPTS, ask, first_that_fit, room, short_question
from pipeline.answering.retrieving import QUERY_CHARS, searchable
from pipeline.llm.client import REPAIR_TOKENS, LlmClient, Spent
from pipeline.llm.structured import AtMost

THOUGHT_CHARS = 400
_ANSWER_TOKENS = 48 + int((THOUGHT_CHARS + QUERY_CHARS) / CHARS_PER_TOKEN)


class Thought(BaseModel):
    """The reasoning stands first, so that what follows is given with it at hand."""

    model_config = ConfigDict(extra="forbid")
    reasoning: Annotated[str, AtMost(THOUGHT_CHARS)]
    enough: bool
    query: Annotated[str, AtMost(QUERY_CHARS)]


@dataclass(frozen=True, slots=True)
class Reflection:
    """What came of it: the query of another hop, or None for none.

    An answer that cannot be read asks for none; nor does one that finds too little and names no query (`silent`).
    """

    query: str | None
    reasoning: str
    enough: bool | None
    repeated: bool
    """Whether the query was asked before: another hop then reads on in what it found."""
    spent: Spent
    failure: str | None = None

    @property
    def silent(self) -> bool:
        return self.enough is False and self.query is None

    def trace(self) -> dict[str, Any]:
        told = {"enough": self.enough, "reasoning": self.reasoning, "query": self.query, "silent": self.silent}
        return told | {"repeated": self.repeated, "failure": self.failure}


async def reflect(
    client: LlmClient, question: str, queries: Sequence[str], claims: Sequence[Claim], context: int
) -> Reflection:
    """Whether these claims are enough to answer, and else the query that is missing, at temperature 0."""
    frame = {
        "question": short_question(question, context),
        "queries": "\n".join(queries),
        "characters": THOUGHT_CHARS,
    }
    left = room(context, _ANSWER_TOKENS + REPAIR_TOKENS, "reflect", claims="", **frame)
    lines = first_that_fit([claim.line() for claim in claims], left)
    told = await ask(client, PROMPTS.messages("reflect", claims="\n".join(lines), **frame), Thought, _ANSWER_TOKENS)
    if told.value is None:
        return Reflection(None, "", None, False, told.spent, told.failure)
    thought = told.value
    query = None if thought.enough else searchable(thought.query) or None
    repeated = query is not None and query.casefold() in {each.casefold() for each in queries}
    return Reflection(query, " ".join(thought.reasoning.split()), thought.enough, repeated, told.spent)
