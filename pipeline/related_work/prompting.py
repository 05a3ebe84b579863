"""The prompts of this domain, and the room that a model's context leaves. Not here: what is done with answers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import SettingError
from pipeline.llm.context import count_message_tokens
from pipeline.llm.prompts import PromptFolder

PROMPTS = PromptFolder(Path(__file__).parent / "prompts")


@dataclass(frozen=True, slots=True)
class Reference:
    """One reference of a task: its number in `[Reference i]`, and the paper."""

    number: int
    arxiv_id: str
    title: str


@dataclass(frozen=True, slots=True)
class Task:
    """A target paper and its references in order, with their texts; what every system is given."""

    task_id: str
    title: str
    description: str
    references: tuple[Reference, ...]
    contents: tuple[str, ...]
    """Text of each reference, in the order of `references`."""

    @property
    def numbers(self) -> frozenset[int]:
        return frozenset(reference.number for reference in self.references)


def room(context: int, answer: int, prompt: str, **values: object) -> int:
    """Tokens that a prompt with these values leaves free in the context, beside an answer of `answer` tokens.

    Raises SettingError where nothing is left.
    """
    left = context - answer - count_message_tokens(PROMPTS.messages(prompt, **values))
    if left <= 0:
        raise SettingError(
            f"CITELOOM_LLM_CONTEXT is {context} tokens, which the prompt {prompt!r} and an answer of {answer} tokens "
            "fill: raise it, or lower CITELOOM_DRAFT_TOKENS, CITELOOM_ELEMENT_TOKENS or CITELOOM_VOTE_TOKENS"
        )
    return left
