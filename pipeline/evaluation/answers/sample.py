"""The answers of a month that are graded, and the claims into which a judge splits them.

A system's own claims are never taken for those of its answer: it may say less, or more, than they
do. A long answer is split part by part, so that a list of at most `MOST_CLAIMS` ends every call and
yet no answer is too long.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

from pipeline import tables
from pipeline.answering.answer import answer_of_row, hides_failure
from pipeline.answering.model_calls import CHARS_PER_TOKEN, NOTHING, short_question
from pipeline.answering.questions import PosedQuestion, Question
from pipeline.answering.systems import writes_answers
from pipeline.corpus.nouns import Answer
from pipeline.corpus.passages.sentences import split_sentences
from pipeline.engine.sampling import shuffled
from pipeline.engine.stage import Job
from pipeline.evaluation.judged import ask, read_prompts
from pipeline.llm.client import REPAIR_TOKENS, LlmClient
from pipeline.llm.context import count_tokens, fit
from pipeline.llm.loop import side_by_side
from pipeline.llm.messages import LlmAnswerError, Message, Spent
from pipeline.llm.structured import AnswerForm, AtMost
from pipeline.tables.writers import writer_name
from pipeline.text import one_line

PROMPTS = read_prompts(__file__)
SPLIT = "split"

# Three sentences with ten claims have room for a sentence that lists eight authors. A part of 160
# tokens is about three long sentences; a single one that is longer is a part by itself.
PART_SENTENCES, PART_TOKENS = 3, 160
MOST_CLAIMS, CLAIM_CHARS = 10, 200
# Per claim its text and 8 tokens of quotes, comma and indentation; around all of it 24.
SPLIT_TOKENS = 24 + MOST_CLAIMS * (8 + int(CLAIM_CHARS / CHARS_PER_TOKEN))

ANSWER_COLUMNS = [name for name in tables.ANSWERS.schema.names if name != "settings"]
_SEED = 20_240_607


@dataclass(frozen=True, slots=True)
class SampledAnswer:
    """One answer to grade. system: goes into the grade and nowhere else. gold_passages: as
    `questions.gold_passages` gives it.
    """

    question: Question
    system: str
    answer: Answer
    gold_passages: Mapping[int, Sequence[str]]


def read_answers(job: Job, posed: Mapping[str, PosedQuestion]) -> Iterator[SampledAnswer]:
    """The answers of the month to its questions. posed: question id → question."""
    for row in job.iterate(tables.ANSWERS, ANSWER_COLUMNS):
        if not writes_answers(row["system"]):
            continue
        question = posed.get(row["question_id"])
        if question is None:
            job.leave_out(
                row["question_id"],
                "question_gone",
                f"{writer_name(row)} answered what the month does not ask now",
            )
            continue
        if hides_failure(row):
            job.leave_out(row["question_id"], "failed_answer", f"{writer_name(row)} did not answer")
            continue
        yield SampledAnswer(
            question.question, writer_name(row), answer_of_row(row), question.gold_passages
        )


def in_shown_order(question_id: str, names: Iterable[str]) -> list[str]:
    """Names in the order in which a judge is shown what they stand for.

    It follows from the question alone: the same for every system and claim, so that prompts share
    their beginning, and another one for every question, so that no rank and no place in a file
    favours anything.
    """
    return shuffled(_SEED, question_id, names)


class AnswerClaims(AnswerForm):
    """Empty where a part claims nothing."""

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
    failures: tuple[LlmAnswerError, ...] = ()
    spent: Spent = NOTHING


def parts_of(answer: str) -> list[str]:
    """An answer in parts of whole sentences; none of an empty one."""
    parts: list[list[str]] = []
    tokens = 0
    for sentence in filter(None, map(str.strip, split_sentences(answer))):
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
    # Claims in one line each, those without a letter or digit left out.
    claims = [
        [
            claim
            for claim in map(one_line, reply.form.claims if reply.form else ())
            if any(map(str.isalnum, claim))
        ]
        for reply in replies
    ]
    return Split(
        claims=tuple(dict.fromkeys(claim for part in claims for claim in part)),
        parts=len(parts),
        full=sum(len(part) >= MOST_CLAIMS for part in claims),
        cut=sum(cut for _, cut in prompts),
        failures=tuple(reply.failure for reply in replies if reply.failure is not None),
        spent=sum((reply.spent for reply in replies), NOTHING),
    )


def _messages(question: str, before: str, part: str, context: int) -> tuple[list[Message], bool]:
    """The messages for a part, and whether its end had no room. Of the part before, at most half of
    the room is filled: it is there to understand names by.
    """
    frame = {
        "question": short_question(question, context),
        "most": MOST_CLAIMS,
        "characters": CLAIM_CHARS,
    }
    free = PROMPTS.room(
        context,
        SPLIT_TOKENS + REPAIR_TOKENS,
        SPLIT,
        answer="",
        before="-" if before else "",
        **frame,
    )
    shown = fit(before, free // 2).text
    fitted = fit(part, free - count_tokens(shown))
    return PROMPTS.messages(SPLIT, answer=fitted.text, before=shown, **frame), fitted.cut
