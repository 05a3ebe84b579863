"""What goes to a language model and what comes back, as plain records. Not here: how it gets there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from pipeline.errors import CiteloomError

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class Completion:
    """One sampled text. Tokens are the logical ones: a prompt that a server cached or shared counts as read.

    Where several samples came in one response, the endpoint reports only their sum (OpenAI) or the first's count
    (llama.cpp); their shares are then by length.
    """

    text: str
    prompt_tokens: int
    completion_tokens: int
    cached: bool
    finish_reason: str


@dataclass(frozen=True, slots=True)
class Spent:
    """What some completions cost, cached ones counted as the rest, so that a resumed run equals an undisturbed one."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
        )


def spent(completions: Iterable[Completion]) -> Spent:
    """The cost of these completions together."""
    return sum((Spent(1, each.prompt_tokens, each.completion_tokens) for each in completions), Spent())


@dataclass(slots=True)
class Usage:
    """What a client did in this run: completions asked for, those found in the cache, and what was really paid."""

    calls: int = 0
    cached: int = 0
    requests: int = 0
    retries: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    """Time in requests, added up over those in flight together."""

    def measured(self) -> dict[str, float]:
        """The counters under the names that a job's `measured` uses."""
        return {
            "llm_calls": self.calls,
            "llm_cached": self.cached,
            "llm_requests": self.requests,
            "llm_retries": self.retries,
            "llm_prompt_tokens": self.prompt_tokens,
            "llm_completion_tokens": self.completion_tokens,
            "llm_request_seconds": round(self.seconds, 3),
        }


class LlmAnswerError(CiteloomError):
    """A structured answer that could not be read, not even after one repair. `spent` tells what it cost."""

    def __init__(self, message: str, cost: Spent) -> None:
        super().__init__(message)
        self.spent = cost
