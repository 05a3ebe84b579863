"""Answers that a model writes from claims alone."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from pipeline.answering.model_calls import (
    CHARS_PER_TOKEN,
    StepLog,
    Tools,
    as_word,
)
from pipeline.corpus.nouns import AnswerSentence, Claim
from pipeline.llm.context import first_that_fit
from pipeline.llm.messages import Spent
from pipeline.llm.structured import AtMost, make_form
from pipeline.text import MAYBE_SPACES, one_line

SENTENCE_CHARS = 240
# A sentence with its frame and numbers; JSON takes up to twice the tokens of the text that it
# holds.
_PER_SENTENCE, _FRAME_TOKENS, _JSON_FACTOR = 36 + int(SENTENCE_CHARS / CHARS_PER_TOKEN), 32, 2
_MOST_SENTENCES, _MOST_CLAIMS = 12, 6
_WORDS_PER_TOKEN = 0.6
_MARK = re.compile(
    rf"{MAYBE_SPACES}\["
    r"\s*+(?:claims?\s*+)?([0-9]{1,4}(?:\s*+[,;]\s*+[0-9]{1,4})*+)\s*+\]",
    re.IGNORECASE,
)


async def compose(
    tools: Tools,
    steps: StepLog,
    prompt: Literal["answer", "draft"],
    question: str,
    claims: Sequence[Claim],
) -> list[AnswerSentence]:
    """Sentences that answer a question from these claims, at temperature 0; none if the claims do
    not hold the answer.

    The claims themselves are the answer (`made`) if the model says that they hold it and none of
    its sentences rests on one: they were extracted for this question. Adds a
    step with the prompt's name.
    """
    if not claims:
        steps.add(prompt, Spent(), abstained="no claims")
        return []
    tokens = tools.settings.answer_tokens
    longest, values = answer_tokens(tokens), prompt_values(question, tools)
    room = tools.room(prompt, longest, claims="", **values)
    lines = first_that_fit([claim.line() for claim in claims], room)
    shown = claims[: len(lines)]
    answer = await tools.ask(
        prompt, answer_form(most_sentences(tokens)), longest, claims="\n".join(lines), **values
    )
    form: Any = answer.value
    sentences, dropped = read_sentences(form.sentences, {claim.number for claim in shown})
    withheld = form.answered == "no"
    if withheld:
        sentences = []
        dropped = [sentence.text for sentence in form.sentences if sentence.text.strip()]
    made = not sentences and not withheld
    if made:
        sentences = [AnswerSentence(claim.text, (claim.number,)) for claim in shown]
    steps.add(
        prompt,
        answer.spent,
        answered=form.answered,
        made=made,
        dropped=dropped,
    )
    return sentences


def prompt_values(question: str, tools: Tools) -> dict[str, Any]:
    """The values that all prompts for an answer share."""
    tokens = tools.settings.answer_tokens
    return {
        "question": tools.shorten(question),
        "most": most_sentences(tokens),
        "words": max(int(_WORDS_PER_TOKEN * tokens), 10),
        "characters": SENTENCE_CHARS,
    }


def read_sentences(
    sentences: Sequence[Any], numbers: Collection[int]
) -> tuple[list[AnswerSentence], list[str]]:
    """Those sentences of a model, with `text` and `claims`, that rest on claims of these numbers;
    texts of the others.

    A mark such as [2] within a sentence is one of its claims, and is removed from its text.
    """
    grounded, dropped = [], []
    for sentence in sentences:
        text, marks = _take_marks(one_line(sentence.text), numbers)
        claims = tuple(
            number for number in dict.fromkeys([*sentence.claims, *marks]) if number in numbers
        )
        if text and claims:
            grounded.append(AnswerSentence(text, claims))
        elif text:
            dropped.append(text)
    return grounded, dropped


def _take_marks(text: str, numbers: Collection[int]) -> tuple[str, list[int]]:
    """The text without marks that name claims, and the numbers of these marks.

    [0, 1] is an interval, as there is no claim 0.
    """
    marks: list[int] = []

    def take(match: re.Match[str]) -> str:
        mark = [int(number) for number in re.findall(r"[0-9]+", match[1])]
        if not set(mark) <= set(numbers):
            return match[0]
        marks.extend(mark)
        return ""

    return _MARK.sub(take, text).strip(), marks


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

    A rehearsal makes up the first of the words, so it plans an answered question's calls.
    """
    answered = Annotated[Literal["yes", "partly", "no"], BeforeValidator(as_word)]
    return make_form("GroundedAnswer", answered=answered, sentences=sentences_field(most))
