"""Prompts of answering, and calls of the model in the room that a context leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import BaseModel

from pipeline.errors import SettingError
from pipeline.llm.client import LlmAnswerError, LlmClient, Message, Spent
from pipeline.llm.context import count_message_tokens, count_tokens, fit
from pipeline.llm.prompts import PromptFolder

Model = TypeVar("Model", bound=BaseModel)

NOTHING = Spent()
"""The cost of no call."""

PROMPTS = PromptFolder(Path(__file__).parent / "prompts")

# A model that samples would search for something else in a rerun; both papers run their systems at 0.
TEMPERATURE = 0.0
# Of JSON in English, with quotes and escapes; the longest answer is computed from it.
CHARS_PER_TOKEN = 3.5
# A question takes at most this part of the context.
_QUESTION_SHARE = 8
# Fewer tokens of passages or claims are of no use.
_FEWEST_TOKENS = 64


@dataclass(frozen=True, slots=True)
class FormAnswer(Generic[Model]):
    """A model's answer in a form; None with the failure if it could not be read. It cost `spent` in both cases."""

    value: Model | None
    spent: Spent
    failure: str | None = None


async def ask(client: LlmClient, messages: Sequence[Message], form: type[Model], tokens: int) -> FormAnswer[Model]:
    """An answer of at most so many tokens, at temperature 0: one call, or two if it had to be repaired."""
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


def room(context: int, answer: int, prompt: str, /, **values: object) -> int:
    """Tokens that a prompt with these values leaves free in the context, beside an answer of `answer` tokens.

    Raises SettingError if fewer than 64 are left.
    """
    left = context - answer - count_message_tokens(PROMPTS.messages(prompt, **values))
    if left < _FEWEST_TOKENS:
        raise SettingError(
            f"CITELOOM_LLM_CONTEXT is {context} tokens, which the prompt {prompt!r} and an answer of {answer} tokens "
            "fill: raise it, or lower CITELOOM_ANSWER_TOKENS or CITELOOM_ANSWER_PASSAGES"
        )
    return left


def short_question(question: str, context: int) -> str:
    """The question in one line, cut to its share of the context."""
    return fit(" ".join(question.split()), context // _QUESTION_SHARE).text


def cut_to_share(texts: Sequence[str], tokens: int) -> tuple[list[str], bool]:
    """The texts cut to fit into so many tokens together, the longest first, and whether any was cut."""
    cuts = [fit(text, most) for text, most in zip(texts, _shares([*map(count_tokens, texts)], tokens), strict=True)]
    return [cut.text for cut in cuts], any(cut.cut for cut in cuts)


def _shares(lengths: Sequence[int], tokens: int) -> list[int]:
    """The tokens of each text: all of its length, or an equal part of what shorter texts leave."""
    shares, left = [0] * len(lengths), tokens
    by_length = sorted(range(len(lengths)), key=lambda place: lengths[place])
    for waiting, place in zip(range(len(lengths), 0, -1), by_length, strict=True):
        shares[place] = min(lengths[place], max(left, 0) // waiting)
        left -= shares[place]
    return shares


def first_that_fit(lines: Sequence[str], tokens: int) -> list[str]:
    """As many lines as fit, from the first on; at least the first, cut if necessary."""
    fitting: list[str] = []
    for line in lines:
        tokens -= count_tokens(line) + 1
        if tokens < 0:
            break
        fitting.append(line)
    if fitting or not lines:
        return fitting
    return [fit(lines[0], max(tokens + count_tokens(lines[0]), 1)).text]
