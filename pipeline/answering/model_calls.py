"""Prompts of answering, and calls of the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import BaseModel

from pipeline.llm.client import LlmAnswerError, LlmClient, Message, Spent
from pipeline.llm.context import fit
from pipeline.llm.prompts import PromptFolder
from pipeline.text import one_line

Model = TypeVar("Model", bound=BaseModel)

NOTHING = Spent()
"""The cost of no call."""

# Fewer tokens of passages or claims are of no use.
PROMPTS = PromptFolder(
    Path(__file__).parent / "prompts",
    fewest=64,
    hint="raise CITELOOM_LLM_CONTEXT, or lower CITELOOM_ANSWER_TOKENS or CITELOOM_ANSWER_PASSAGES",
)

# A model that samples would search for something else in a rerun; both papers run their systems at
# 0.
TEMPERATURE = 0.0
# Of JSON in English, with quotes and escapes; the longest answer is computed from it.
CHARS_PER_TOKEN = 3.5
# A question takes at most this part of the context.
_QUESTION_SHARE = 8


@dataclass(frozen=True, slots=True)
class FormAnswer(Generic[Model]):
    """A model's answer in a form; None with the failure if it could not be read. It cost `spent` in
    both cases.
    """

    value: Model | None
    spent: Spent
    failure: str | None = None


async def ask(
    client: LlmClient, messages: Sequence[Message], form: type[Model], tokens: int
) -> FormAnswer[Model]:
    """An answer of at most so many tokens, at temperature 0: one call, or two if it had to be
    repaired.
    """
    try:
        answer = await client.answer(messages, form, max_tokens=tokens, temperature=TEMPERATURE)
    except LlmAnswerError as error:
        return FormAnswer(None, error.spent, str(error))
    return FormAnswer(answer.value, answer.spent)


def as_word(value: object) -> object:
    """A word such as "Yes.", or a truth value, as the forms spell it; for a `BeforeValidator`."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value).strip(" .\"'").casefold()


def short_question(question: str, context: int) -> str:
    """The question in one line, cut to its share of the context."""
    return fit(one_line(question), context // _QUESTION_SHARE).text
