"""Messages, completions, and what they cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pipeline.errors import CiteloomError

Role = Literal["system", "user", "assistant"]
FailureKind = Literal[
    "cut", "refused", "filtered", "empty", "only_reasoning", "unreadable", "error"
]
LASTING: frozenset[FailureKind] = frozenset({"refused", "filtered"})
"""Failures that the same request meets again."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class Completion:
    """One sampled text. Its prompt counts as read even if the server cached or shared it.

    Of several samples in one response, the endpoint reports only the sum of tokens (OpenAI) or
    those of the first (llama.cpp): each has a share by its length. failure: why it is no answer,
    None for one; with `detail`, in the endpoint's words.
    """

    text: str
    prompt_tokens: int
    completion_tokens: int
    cached: bool
    finish_reason: str
    failure: FailureKind | None = None
    detail: str = ""

    @property
    def truncated(self) -> bool:
        """Whether it ended at `max_tokens`."""
        return self.finish_reason == "length"


@dataclass(frozen=True, slots=True)
class Spent:
    """The cost of completions. Cached ones count too, so that a resumed run costs the same."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
        )

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens


def spent(completions: Iterable[Completion]) -> Spent:
    """The cost of these completions together."""
    return sum(
        (Spent(1, item.prompt_tokens, item.completion_tokens) for item in completions), Spent()
    )


@dataclass(frozen=True, slots=True)
class Prices:
    """Money for a million tokens, in the user's currency; 0 if not set."""

    read: float = 0.0
    written: float = 0.0

    @property
    def known(self) -> bool:
        return self.read > 0 or self.written > 0

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Money for so many tokens read and written."""
        return (prompt_tokens * self.read + completion_tokens * self.written) / 1e6


@dataclass(slots=True)
class Usage:
    """The usage of a client in this run: completions, those from the cache, and what was paid."""

    calls: int = 0
    cached: int = 0
    requests: int = 0
    retries: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    """Sum of the times of requests until they were answered."""
    waited: float = 0.0
    """Time that requests waited for rate limits and between attempts."""
    cached_tokens: int = 0
    """Tokens of the answers from the cache, and of their prompts."""
    prices: Prices = Prices()

    def count_request(self, cost: Spent, seconds: float) -> None:
        """Add one request that was paid for."""
        self.requests += 1
        self.seconds += seconds
        self.prompt_tokens += cost.prompt_tokens
        self.completion_tokens += cost.completion_tokens

    def count_cached(self, completions: Sequence[Completion]) -> None:
        """Add completions of one prompt that the cache had."""
        self.cached += len(completions)
        self.cached_tokens += max((item.prompt_tokens for item in completions), default=0)
        self.cached_tokens += sum(item.completion_tokens for item in completions)

    @property
    def cost(self) -> float:
        """Money for what was paid; 0 without a price."""
        return self.prices.cost(self.prompt_tokens, self.completion_tokens)

    def measured(self) -> dict[str, float]:
        """The counters under their names in a job's `measured`; the cost if prices are known."""
        counters: dict[str, float] = {
            "llm_calls": self.calls,
            "llm_cached": self.cached,
            "llm_requests": self.requests,
            "llm_retries": self.retries,
            "llm_prompt_tokens": self.prompt_tokens,
            "llm_completion_tokens": self.completion_tokens,
            "llm_cached_tokens": self.cached_tokens,
            "llm_request_seconds": round(self.seconds, 3),
            "llm_waited_seconds": round(self.waited, 3),
        }
        if self.prices.known:
            counters["llm_cost"] = round(self.cost, 6)
        return counters


_FAILURES: Mapping[str, str] = {
    "cut": "it was cut in its thoughts or by the endpoint's limit: raise `thinking` in the model's"
    " table (citeloom doctor --model), or let it think less",
    "refused": "the model refused",
    "filtered": "the service's content filter withheld it",
    "empty": "it is empty: check the endpoint's chat template",
    "only_reasoning": "it has thoughts alone: check the endpoint's parser of reasoning",
    "error": "the endpoint broke it off",
}


class LlmAnswerError(CiteloomError):
    """A completion that is no answer.

    kind: why. spent: what it cost. is_kept: whether it is not asked for again, as it was asked for
    three times, or its kind lasts.
    """

    def __init__(
        self,
        kind: FailureKind,
        detail: str = "",
        cost: Spent = Spent(),
        *,
        is_kept: bool = False,
    ) -> None:
        shown = f" ({detail})" if detail else ""
        reason = f"no answer: {_FAILURES[kind]}{shown}" if kind in _FAILURES else detail
        again = "; citeloom run --retry-failed asks for it again" if is_kept else ""
        super().__init__(f"{reason}{again}")
        self.kind, self.detail, self.spent, self.is_kept = kind, detail, cost, is_kept
