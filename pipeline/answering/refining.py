"""WikiChat's refinement: marks of a draft on four criteria, and the draft as it should be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import BaseModel, ConfigDict, create_model

from pipeline.answering.answered import Claim, Sentence
from pipeline.answering.composing import (
    Read,
    answer_tokens,
    compose_frame,
    most_sentences,
    numbers_of,
    read_sentences,
    sentences_field,
)
from pipeline.answering.prompting import PROMPTS, ask, first_that_fit, room
from pipeline.llm.client import REPAIR_TOKENS, LlmClient, Spent
from pipeline.llm.context import count_tokens, fit

CRITERIA = ("relevant", "natural", "non_repetitive", "temporally_correct")
FULL_MARK = 100
_MARKS_TOKENS = 64
# The draft has this part of the room at most, the claims the rest: what a claim says is what may not be lost.
_DRAFT_SHARE = 2


@dataclass(frozen=True, slots=True)
class Refined:
    """The sentences after refinement; `kept`: why the draft stayed, where it did."""

    sentences: tuple[Sentence, ...]
    marks: dict[str, int]
    kept: str | None
    read: Read
    spent: Spent
    failure: str | None = None

    def trace(self) -> dict[str, Any]:
        told = {"marks": self.marks, "kept": self.kept, "failure": self.failure}
        return told | self.read.trace() | {"sentences": [list(each.claims) for each in self.sentences]}


async def refine(
    client: LlmClient,
    question: str,
    draft: Sequence[Sentence],
    claims: Sequence[Claim],
    *,
    context: int,
    tokens: int,
) -> Refined:
    """The draft after one call at temperature 0.

    It stays as it is where it has full marks on all criteria, where the answer cannot be read, and where no sentence
    of the answer rests on a claim.
    """
    longest = answer_tokens(tokens) + _MARKS_TOKENS
    frame = compose_frame(question, tokens, context) | {"criteria": CRITERIA, "count": FULL_MARK}
    left = room(context, longest + REPAIR_TOKENS, "refine", draft="", claims="", **frame)
    written = fit("\n".join(map(_line, draft)), left // _DRAFT_SHARE).text
    lines = first_that_fit([claim.line() for claim in claims], left - count_tokens(written))
    messages = PROMPTS.messages("refine", draft=written, claims="\n".join(lines), **frame)
    told = await ask(client, messages, refined_form(most_sentences(tokens)), longest)
    if told.value is None:
        return Refined(tuple(draft), {}, "unreadable", Read(), told.spent, told.failure)
    given: Any = told.value
    marks = {name: getattr(given, name) for name in CRITERIA}
    read = read_sentences(given.sentences, numbers_of(claims[: len(lines)]))
    kept = "full marks" if min(marks.values()) >= FULL_MARK else None if read.sentences else "nothing left"
    return Refined(tuple(draft) if kept else read.sentences, marks, kept, read, told.spent)


def _line(sentence: Sentence) -> str:
    return f"{sentence.text} ({', '.join(map(str, sentence.claims))})"


@cache
def refined_form(most: int) -> type[BaseModel]:
    """The form of the answer: a mark for each criterion, then the sentences."""
    marks: dict[str, Any] = dict.fromkeys(CRITERIA, (int, ...))
    return create_model(
        "RefinedAnswer", __config__=ConfigDict(extra="forbid"), **marks, sentences=sentences_field(most)
    )
