"""A ceiling on what one run may spend on language models: calls, tokens, money.

A run is a process: `citeloom run` with all its months, or one run of Dagster. Nothing is kept between runs, as
answers are: the next run begins with a whole budget and finds in the cache what this one paid for. Not here: asking,
and what a call costs before it is made (`pipeline.estimate`).
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import CiteloomError, SettingError
from pipeline.llm.messages import Prices, Spent
from pipeline.settings import Settings

_REACHED = "the LLM budget of this run is reached"


class BudgetReached(CiteloomError):
    """The run's ceiling lets no further request go out. No TransientFailure: trying again would meet it again."""


def is_budget_reached(message: str) -> bool:
    """Whether the message of a stage that failed is that of BudgetReached."""
    return message.startswith(_REACHED)


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that a run may spend; 0 for no limit."""

    calls: int = 0
    tokens: int = 0
    money: float = 0.0


@dataclass(frozen=True, slots=True)
class _Bill:
    """What requests cost, each at the prices of the model that it went to."""

    spent: Spent
    money: float

    def __add__(self, other: _Bill) -> _Bill:
        return _Bill(self.spent + other.spent, self.money + other.money)

    def __sub__(self, other: _Bill) -> _Bill:
        return _Bill(_less(self.spent, other.spent), self.money - other.money)


class Budget:
    """What a run may spend, has spent, and may still come to spend on requests in flight. Safe between threads.

    A run may ask several models, a judge beside a writer: each request is counted at its own model's prices.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._paid = self._reserved = _bill(Spent(), Prices())
        self._lock = threading.Lock()

    @property
    def spent(self) -> Spent:
        return self._paid.spent

    @property
    def counts_tokens(self) -> bool:
        """Whether a request's tokens must be known before it is sent."""
        return self.limits.tokens > 0 or self.limits.money > 0

    def reserve(self, worst: Spent, prices: Prices) -> bool:
        """Set aside the most that a request can cost; False where that must wait for requests in flight to be settled.

        Raises BudgetReached where the request could pass the ceiling even without those in flight.
        """
        more = _bill(worst, prices)
        with self._lock:
            passed = self._passed(self._paid + more)
            if passed is not None:
                raise BudgetReached(self._told(passed, more))
            if self._passed(self._paid + self._reserved + more) is not None:
                return False
            self._reserved += more
            return True

    def settle(self, worst: Spent, real: Spent, prices: Prices) -> None:
        """Replace what was set aside for a request by what it cost; nothing for one that brought no answer."""
        with self._lock:
            self._reserved -= _bill(worst, prices)
            self._paid += _bill(real, prices)

    def _passed(self, bill: _Bill) -> str | None:
        """Which of the limits such a bill passes."""
        limits = self.limits
        if limits.calls and bill.spent.calls > limits.calls:
            return "calls"
        if limits.tokens and bill.spent.tokens > limits.tokens:
            return "tokens"
        # A hair's breadth for the sums of floats.
        return "money" if limits.money and bill.money > limits.money * (1 + 1e-9) + 1e-12 else None

    def _told(self, passed: str, worst: _Bill) -> str:
        limit: float = getattr(self.limits, passed)
        spent, more = _in(passed, self._paid), _in(passed, worst)
        return (
            f"{_REACHED}: {spent:,} of {limit:,} {passed} are spent, and the next request "
            f"may take {more:,} more ({self.describe()}); answers so far are kept. Raise "
            f"CITELOOM_LLM_BUDGET_{passed.upper()}, or run the same command again with a new budget: it goes on from "
            "here, and pays for no answer twice"
        )

    def describe(self) -> str:
        """What was spent so far, in words."""
        money = f", {self._paid.money:.4f} in money" if self._paid.money else ""
        read, written = self.spent.prompt_tokens, self.spent.completion_tokens
        return f"{self.spent.calls:,} calls, {read:,} tokens read and {written:,} written{money}"


def _bill(cost: Spent, prices: Prices) -> _Bill:
    return _Bill(cost, prices.cost(cost.prompt_tokens, cost.completion_tokens))


def _in(unit: str, bill: _Bill) -> float:
    return {"calls": bill.spent.calls, "tokens": bill.spent.tokens, "money": round(bill.money, 6)}[unit]


def _less(total: Spent, part: Spent) -> Spent:
    return Spent(
        total.calls - part.calls,
        total.prompt_tokens - part.prompt_tokens,
        total.completion_tokens - part.completion_tokens,
    )


def prices_of(settings: Settings) -> Prices:
    """The prices that the settings give."""
    return Prices(settings.llm_price_read, settings.llm_price_written)


def limits_of(settings: Settings) -> Limits:
    """The ceiling that the settings give."""
    return Limits(settings.llm_budget_calls, settings.llm_budget_tokens, settings.llm_budget_money)


def check_budget(settings: Settings) -> None:
    """Raise SettingError where money has a ceiling and no price."""
    if settings.llm_budget_money and not prices_of(settings).known:
        raise SettingError(
            f"CITELOOM_LLM_BUDGET_MONEY is set, but no price of {settings.llm_model}: set CITELOOM_LLM_PRICE_READ and "
            "CITELOOM_LLM_PRICE_WRITTEN (for a judge CITELOOM_JUDGE_PRICE_…), in money for a million tokens"
        )


_budgets: dict[tuple[Path, Limits], Budget] = {}


def run_budget(settings: Settings) -> Budget:
    """The budget of this process's run: one for each data root and ceiling, shared by all its stages and models."""
    key = settings.data_root, limits_of(settings)
    return _budgets.setdefault(key, Budget(key[1]))
