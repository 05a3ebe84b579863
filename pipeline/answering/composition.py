"""Answers that a model writes: from claims alone, or by itself."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from pipeline.answering.answer import Answer, Claim, Sentence, StepLog, plain_answer
from pipeline.answering.model_calls import CHARS_PER_TOKEN, PROMPTS, TEMPERATURE, Params, as_word, ask, short_question
from pipeline.answering.tools import Tools
from pipeline.answering.user_question import UserQuestion
from pipeline.llm.client import REPAIR_TOKENS, Completion, LlmClient, Spent, spent
from pipeline.llm.context import first_that_fit
from pipeline.llm.structured import AtMost, make_form

Held = Literal["yes", "partly", "no"]
"""Whether claims hold the answer to a question."""

SENTENCE_CHARS = 240
# A sentence with its frame and numbers; JSON takes up to twice the tokens of the text that it holds.
_PER_SENTENCE, _FRAME_TOKENS, _JSON_FACTOR = 36 + int(SENTENCE_CHARS / CHARS_PER_TOKEN), 32, 2
_MOST_SENTENCES, _MOST_CLAIMS = 12, 6
_WORDS_PER_TOKEN = 0.6
_MARK = re.compile(r"\s*\[\s*(?:claims?\s*)?([0-9]{1,4}(?:\s*[,;]\s*[0-9]{1,4})*)\s*\]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ReadSentences:
    """The sentences of a model's answer that rest on claims, and what was dropped."""

    sentences: tuple[Sentence, ...] = ()
    dropped: tuple[str, ...] = ()
    """Sentences that rest on no claim."""
    unknown: int = 0
    """Numbers that no claim has."""

    def trace(self) -> dict[str, Any]:
        return {"dropped": list(self.dropped), "unknown": self.unknown}


@dataclass(frozen=True, slots=True)
class Composition:
    """The sentences of an answer; none if the claims do not hold it.

    answered: what the model said of that; None if it could not be read. made: whether the claims themselves are the
    answer, because none of its sentences rests on a claim. cut: whether claims were left out for want of room.
    """

    read: ReadSentences
    answered: Held | None
    made: bool
    cut: bool
    spent: Spent
    failure: str | None = None

    @property
    def sentences(self) -> tuple[Sentence, ...]:
        return self.read.sentences

    def trace(self) -> dict[str, Any]:
        return {
            "answered": self.answered,
            "made": self.made,
            "cut": self.cut,
            "failure": self.failure,
            **self.read.trace(),
            "sentences": [list(sentence.claims) for sentence in self.sentences],
        }


async def compose(
    client: LlmClient, prompt: str, question: str, claims: Sequence[Claim], *, context: int, tokens: int
) -> Composition:
    """Sentences of at most so many tokens that answer a question from these claims, at temperature 0.

    The claims themselves are the answer if the model says that they hold it and none of its sentences rests on one, or
    if its answer cannot be read: they were extracted for this question.
    """
    longest = answer_tokens(tokens)
    values = prompt_values(question, tokens, context)
    left = PROMPTS.room(context, longest + REPAIR_TOKENS, prompt, claims="", **values)
    lines = first_that_fit([claim.line() for claim in claims], left)
    cut, claims = len(lines) < len(claims), claims[: len(lines)]
    messages = PROMPTS.messages(prompt, claims="\n".join(lines), **values)
    answer = await ask(client, messages, answer_form(most_sentences(tokens)), longest)
    form: Any = answer.value
    if form is not None and form.answered == "no":
        withheld = tuple(sentence.text for sentence in form.sentences if sentence.text.strip())
        return Composition(ReadSentences((), withheld), "no", False, cut, answer.spent)
    numbers = {claim.number for claim in claims}
    read = read_sentences(form.sentences, numbers) if form else ReadSentences()
    made = not read.sentences
    if made:
        read = replace(read, sentences=tuple(Sentence(claim.text, (claim.number,)) for claim in claims))
    return Composition(read, form.answered if form else None, made, cut, answer.spent, answer.failure)


def prompt_values(question: str, tokens: int, context: int) -> dict[str, Any]:
    """The values that all prompts for an answer share."""
    return {
        "question": short_question(question, context),
        "most": most_sentences(tokens),
        "words": max(int(_WORDS_PER_TOKEN * tokens), 10),
        "characters": SENTENCE_CHARS,
    }


def read_sentences(sentences: Sequence[Any], numbers: Collection[int]) -> ReadSentences:
    """Those sentences of a model, with `text` and `claims`, that rest on claims of these numbers.

    A mark such as [2] within a sentence is one of its claims, and is removed from its text.
    """
    grounded, dropped, unknown = [], [], 0
    for sentence in sentences:
        text, marked = _unmarked(" ".join(sentence.text.split()), numbers)
        named = dict.fromkeys([*sentence.claims, *marked])
        known = tuple(number for number in named if number in numbers)
        unknown += len(named) - len(known)
        if text and known:
            grounded.append(Sentence(text, known))
        elif text:
            dropped.append(text)
    return ReadSentences(tuple(grounded), tuple(dropped), unknown)


def _unmarked(text: str, numbers: Collection[int]) -> tuple[str, list[int]]:
    """The text without marks that name claims, and their numbers; [0, 1] is an interval, as there is no claim 0."""
    marked: list[int] = []

    def take(match: re.Match[str]) -> str:
        named = [int(number) for number in re.findall(r"[0-9]+", match[1])]
        if not set(named) <= set(numbers):
            return match[0]
        marked.extend(named)
        return ""

    return _MARK.sub(take, text).strip(), marked


def answer_tokens(tokens: int) -> int:
    """Longest JSON that holds an answer of so many tokens."""
    return _JSON_FACTOR * tokens + _FRAME_TOKENS


def most_sentences(tokens: int) -> int:
    """Sentences of an answer of so many tokens, at most."""
    return min(max(_JSON_FACTOR * tokens // _PER_SENTENCE, 1), _MOST_SENTENCES)


def sentences_field(most: int) -> Any:
    """The type of a field for the sentences of an answer."""
    sentence = make_form(
        "AnswerSentence",
        text=Annotated[str, AtMost(SENTENCE_CHARS)],
        claims=Annotated[list[int], AtMost(_MOST_CLAIMS)],
    )
    return Annotated[list[sentence], AtMost(most)]  # type: ignore[valid-type]


@cache
def answer_form(most: int) -> type[Any]:
    """The form of an answer, bounded so that a small model under constrained decoding ends.

    A rehearsal makes up the first of the words, so it plans the calls of a question that is answered.
    """
    answered = Annotated[Held, BeforeValidator(as_word)]
    return make_form("GroundedAnswer", answered=answered, sentences=sentences_field(most))


async def direct(question: UserQuestion, tools: Tools) -> Answer:
    """The model's own answer, in one call at temperature 0."""
    steps = StepLog(tools.on_step)
    completion = await write_alone(tools.model, question, tools.params)
    steps.add("generate", spent([completion]), text=completion.text.strip(), truncated=completion.truncated)
    return plain_answer(completion.text, steps)


async def write_alone(client: LlmClient, question: UserQuestion, params: Params) -> Completion:
    """What the model writes without passages. WikiChat makes the same call, so a run of both pays for it once."""
    text = short_question(question.question, params.context)
    left = PROMPTS.room(params.context, params.tokens, "direct", question=text, history="-" if question.history else "")
    messages = PROMPTS.messages("direct", question=text, history=question.conversation(left))
    return await client.complete(messages, temperature=TEMPERATURE, max_tokens=params.tokens)
