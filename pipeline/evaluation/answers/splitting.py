"""Splitting an answer into the claims that it makes, and the prompts of grading.

A system's own claims are never taken for those of its answer: it may say less, or more, than they
do. A long answer is split part by part, so that a list of at most `MOST_CLAIMS` ends every call and
yet no answer is too long.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict

from pipeline.answering.model_calls import CHARS_PER_TOKEN, NOTHING, FormAnswer, ask, short_question
from pipeline.corpus.passages.sentences import split_sentences
from pipeline.evaluation.annotation.study import shuffled
from pipeline.llm.client import REPAIR_TOKENS, LlmClient, Message, Spent
from pipeline.llm.context import count_tokens, fit
from pipeline.llm.loop import side_by_side
from pipeline.llm.prompts import PromptFolder
from pipeline.llm.structured import AtMost
from pipeline.text import one_line

# Fewer tokens than this of an answer or of passages tell nothing.
PROMPTS = PromptFolder(
    Path(__file__).parent / "prompts",
    fewest=96,
    hint="raise CITELOOM_LLM_CONTEXT, or the judge's context in the file of CITELOOM_MODELS",
)
SPLIT, CLAIM, GOLD = "split", "claim", "gold"

_SEED = 20_240_607


def prompt_digest() -> str:
    """SHA-256 of the prompts, for fingerprints."""
    return PROMPTS.digest(SPLIT, CLAIM, GOLD)


def in_shown_order(question_id: str, names: Iterable[str]) -> list[str]:
    """Names in the order in which a judge is shown what they stand for.

    It follows from the question alone: the same for every system and claim, so that prompts share
    their beginning, and another one for every question, so that no rank and no place in a file
    favours anything.
    """
    return shuffled(_SEED, question_id, names)


# Three sentences with ten claims have room for a sentence that lists eight authors. A part of 160
# tokens is about three long sentences; a single one that is longer is a part by itself.
PART_SENTENCES, PART_TOKENS = 3, 160
MOST_CLAIMS, CLAIM_CHARS = 10, 200
# Per claim its text and 8 tokens of quotes, comma and indentation; around all of it 24.
SPLIT_TOKENS = 24 + MOST_CLAIMS * (8 + int(CLAIM_CHARS / CHARS_PER_TOKEN))


class AnswerClaims(BaseModel):
    """Empty where a part claims nothing."""

    model_config = ConfigDict(extra="forbid")
    claims: Annotated[list[Annotated[str, AtMost(CLAIM_CHARS)]], AtMost(MOST_CLAIMS)]


@dataclass(frozen=True, slots=True)
class Split:
    """The claims of an answer in its order, each once.

    full: parts with as many claims as may be, which may have had more. cut: parts of which the end
    was not read. failures: why parts could not be read. parts: how many there were.
    """

    claims: tuple[str, ...] = ()
    parts: int = 0
    full: int = 0
    cut: int = 0
    failures: tuple[str, ...] = ()
    spent: Spent = NOTHING

    @property
    def unreadable(self) -> bool:
        """Whether nothing is known of what the answer claims."""
        return not self.claims and bool(self.failures)


def parts_of(answer: str) -> list[str]:
    """An answer in parts of whole sentences; none of an empty one."""
    parts: list[list[str]] = []
    tokens = 0
    for sentence in filter(None, (each.strip() for each in split_sentences(answer))):
        longer = tokens + count_tokens(sentence)
        if parts and len(parts[-1]) < PART_SENTENCES and longer <= PART_TOKENS:
            parts[-1].append(sentence)
            tokens = longer
        else:
            parts.append([sentence])
            tokens = count_tokens(sentence)
    return ["\n".join(part) for part in parts]


async def split_answer(client: LlmClient, question: str, answer: str, context: int) -> Split:
    """The claims of an answer: one call for each part, two where it had to be repaired; none for an
    empty answer.

    Raises SettingError where the context is too small.
    """
    parts = parts_of(answer)
    prompts = [
        _messages(question, before, part, context) for before, part in pairwise(["", *parts])
    ]
    replies = await side_by_side(
        ask(client, messages, AnswerClaims, SPLIT_TOKENS) for messages, _ in prompts
    )
    return _joined(replies, sum(cut for _, cut in prompts))


def _messages(question: str, before: str, part: str, context: int) -> tuple[list[Message], bool]:
    """The messages for a part, and whether its end had no room. Of the part before, at most half of
    the room is
    filled: it is there to understand names by.
    """
    frame = {
        "question": short_question(question, context),
        "most": MOST_CLAIMS,
        "characters": CLAIM_CHARS,
    }
    left = PROMPTS.room(
        context,
        SPLIT_TOKENS + REPAIR_TOKENS,
        SPLIT,
        answer="",
        before="-" if before else "",
        **frame,
    )
    shown = fit(before, left // 2).text
    kept = fit(part, left - count_tokens(shown))
    return PROMPTS.messages(SPLIT, answer=kept.text, before=shown, **frame), kept.cut


def _joined(replies: Sequence[FormAnswer[AnswerClaims]], cut: int) -> Split:
    lists = [[] if each.value is None else _claims(each.value) for each in replies]
    return Split(
        claims=tuple(dict.fromkeys(claim for part in lists for claim in part)),
        parts=len(replies),
        full=sum(len(part) >= MOST_CLAIMS for part in lists),
        cut=cut,
        failures=tuple(each.failure for each in replies if each.failure is not None),
        spent=sum((each.spent for each in replies), NOTHING),
    )


def _claims(given: AnswerClaims) -> list[str]:
    """Claims in one line each, those without a letter or digit left out."""
    folded = (one_line(claim) for claim in given.claims)
    return [claim for claim in folded if any(sign.isalnum() for sign in claim)]
