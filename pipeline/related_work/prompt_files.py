"""The prompt files of this domain, and how long answers may be."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pipeline.llm.context import fit
from pipeline.llm.prompts import PromptFolder
from pipeline.llm.structured import AtMost
from pipeline.related_work.task import Task
from pipeline.settings import Settings

# All examples take at most this part of a context: of 16,384 tokens two have 1,024 each,
# longer than most related-work sections. The two shipped have 260.
_EXAMPLES_SHARE = 8
# The room that a prompt leaves for an answer without a limit: a quarter of the context, at most
# 1,200 words.
_ROOM_SHARE, _MOST_ROOM = 4, 2048

# A short sentence with its citation; and a quarter of what a context has beyond 1,536 tokens, more
# than any prompt without its texts has: a prompt holds the draft before, the target and the
# reference. Another number would give other sections than earlier data roots hold.
_PER_REFERENCE, _DRAFT_SHARE, _WITHOUT_TEXTS = 24, 4, 1536
_WORDS_PER_TOKEN, _FEWEST_WORDS = 0.6, 10
_HEAD = re.compile(r"\[(?=Reference\s*[0-9])", re.IGNORECASE)

# `_tied.j2` belongs to a system that left. Every prompt's digest includes it: without the file, all
# sections of earlier data roots would be written again.
PROMPTS = PromptFolder(
    Path(__file__).parent / "prompts",
    hint=(
        "raise CITELOOM_LLM_CONTEXT, or set lower CITELOOM_DRAFT_TOKENS or CITELOOM_ELEMENT_TOKENS"
    ),
)


def style_examples(task: Task, count: int, settings: Settings) -> list[str]:
    """The first `count` of a task's examples, each cut to its share of the context, in tokens."""
    longest = settings.llm_context // _EXAMPLES_SHARE // max(count, 1)
    return [fit(text, longest).text for text in task.examples[:count]]


@dataclass(frozen=True, slots=True)
class AnswerLength:
    """How long an answer may be, in tokens. limit: sent as max_tokens, None for none; room: what
    its prompt leaves.
    """

    limit: int | None
    room: int

    @property
    def words(self) -> int | None:
        """Words that a prompt allows, None for as many as the model writes.

        Of English prose a token is 0.75 of a word; a citation, [Reference 12], takes some six
        tokens and passes for two words. A model that does not know its limit is cut off in the
        middle of a sentence, a vote before its last line.
        """
        return (
            None if self.limit is None else max(int(_WORDS_PER_TOKEN * self.limit), _FEWEST_WORDS)
        )

    def times(self, factor: int) -> AnswerLength:
        """The length of an answer that is so many times as long."""
        return AnswerLength(None if self.limit is None else factor * self.limit, factor * self.room)


def answer_length(limit: int | None, context: int) -> AnswerLength:
    """The length of an answer in a context of so many tokens; None for no limit."""
    return AnswerLength(limit, limit or min(context // _ROOM_SHARE, _MOST_ROOM))


def draft_length(settings: Settings, references: int) -> AnswerLength:
    """The length of a section on so many references, by CITELOOM_DRAFT_TOKENS.

    The limit is raised where each reference would have less than a short sentence, as far as the
    context allows.
    """
    context = settings.llm_context
    needed = min(_PER_REFERENCE * references, max(context - _WITHOUT_TEXTS, 0) // _DRAFT_SHARE)
    limit = max(settings.draft_tokens, needed) if settings.draft_tokens else None
    length = answer_length(limit, context)
    return AnswerLength(length.limit, max(length.room, needed))


def at_most(kind: Any, number: int | None) -> Any:
    """The type of a field with at most so many characters or members, by which constrained decoding
    comes to an end; the type itself for None.
    """
    return kind if number is None else Annotated[kind, AtMost(number)]


def unnumbered(text: str) -> str:
    """A paper's text in which nothing looks like the head of another reference among which it is
    shown.
    """
    return _HEAD.sub("[ ", text)
