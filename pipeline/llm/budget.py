"""A limit on what one run may spend on language models: calls, tokens, money.

A run is a process: `citeloom run` with all its months, or one run of Dagster. The next run has a
whole budget, and finds in the cache what this one paid for. A budget with a name belongs to all
runs that name it, and is stored on disk.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path

from pipeline.errors import CiteloomError, SettingError
from pipeline.llm.messages import Prices, Spent
from pipeline.llm.models import Model
from pipeline.settings import Settings
from pipeline.storage.sqlite import LOCK_SECONDS, named_errors, transaction

_REACHED = "the LLM budget of this run is reached"
_TABLE = """
CREATE TABLE IF NOT EXISTS budgets (
    name TEXT PRIMARY KEY, calls INTEGER NOT NULL, read INTEGER NOT NULL, written INTEGER NOT NULL,
    money REAL NOT NULL
) WITHOUT ROWID
"""


class BudgetReached(CiteloomError):
    """The budget allows no further request. Another attempt would meet the same limit."""


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
    """The cost of requests, each at the prices of its model."""

    calls: int = 0
    read: int = 0
    written: int = 0
    money: float = 0.0

    @classmethod
    def of(cls, cost: Spent, prices: Prices) -> _Bill:
        money = prices.cost(cost.prompt_tokens, cost.completion_tokens)
        return cls(cost.calls, cost.prompt_tokens, cost.completion_tokens, money)

    @property
    def tokens(self) -> int:
        return self.read + self.written

    def plus(self, other: _Bill, sign: int = 1) -> _Bill:
        amounts = zip(astuple(self), astuple(other), strict=True)
        return _Bill(*(own + sign * others for own, others in amounts))

    def __str__(self) -> str:
        money = f", {self.money:.4f} in money" if self.money else ""
        return (
            f"{self.calls:,} calls, {self.read:,} tokens read and {self.written:,} written{money}"
        )


class Budget:
    """What a run may spend, has spent, and has reserved for requests in flight. Thread-safe.

    A run may call several models, a judge beside a writer: each request is counted at its own
    model's prices. name: of the budget that it shares with other runs; empty for its own. file:
    SQLite file of the named budgets. What a process reserved there and did not settle stays
    counted: if it was killed, the requests may have been paid for.
    """

    def __init__(self, limits: Limits, name: str = "", file: Path | None = None) -> None:
        self.limits, self.name = limits, name
        self._reserved = _Bill()
        self._lock = threading.Lock()
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
        self._errors = partial(named_errors, file, "shared budgets", "move the file away")
        with self._errors():
            self._sql = sqlite3.connect(
                file or ":memory:",
                timeout=LOCK_SECONDS,
                isolation_level=None,
                check_same_thread=False,
            )
            self._sql.execute(_TABLE)
            self._sql.execute("INSERT OR IGNORE INTO budgets VALUES (?, 0, 0, 0, 0)", (name,))

    @property
    def spent(self) -> Spent:
        """The cost of settled requests; what other runs have in flight counts as spent."""
        with self._transaction() as booked:
            paid = booked.plus(self._reserved, -1)
        return Spent(paid.calls, paid.read, paid.written)

    @property
    def counts_tokens(self) -> bool:
        """Whether a request's tokens must be known before it is sent."""
        return self.limits.tokens > 0 or self.limits.money > 0

    def reserve(self, worst: Spent, prices: Prices) -> bool:
        """Reserve the most that a request can cost; False if it must wait for those in flight.

        Raises BudgetReached if the request could pass the limit even with nothing in flight.
        """
        request = _Bill.of(worst, prices)
        with self._transaction() as booked:
            paid = booked.plus(self._reserved, -1)
            passed = self._limit_passed(paid.plus(request))
            if passed is not None:
                raise BudgetReached(self._message(passed, paid, request))
            if self._limit_passed(booked.plus(request)) is not None:
                return False
            self._book(booked.plus(request))
            self._reserved = self._reserved.plus(request)
            return True

    def settle(self, worst: Spent, cost: Spent, prices: Prices) -> None:
        """Replace a request's reservation by its cost; by nothing where it has no answer."""
        reserved = _Bill.of(worst, prices)
        with self._transaction() as booked:
            self._book(booked.plus(_Bill.of(cost, prices)).plus(reserved, -1))
            self._reserved = self._reserved.plus(reserved, -1)

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[_Bill]:
        """The amounts booked, which no other thread or process changes within the block."""
        with self._lock, self._errors(), transaction(self._sql):
            query = "SELECT calls, read, written, money FROM budgets WHERE name = ?"
            yield _Bill(*self._sql.execute(query, (self.name,)).fetchone())

    def _book(self, bill: _Bill) -> None:
        update = "UPDATE budgets SET calls = ?, read = ?, written = ?, money = ? WHERE name = ?"
        self._sql.execute(update, (*astuple(bill), self.name))

    def _limit_passed(self, bill: _Bill) -> str | None:
        """Which of the limits such a bill passes."""
        limits = self.limits
        if limits.calls and bill.calls > limits.calls:
            return "calls"
        if limits.tokens and bill.tokens > limits.tokens:
            return "tokens"
        # A tolerance for the sums of floats.
        return "money" if limits.money and bill.money > limits.money * (1 + 1e-9) + 1e-12 else None

    def _message(self, passed: str, paid: _Bill, request: _Bill) -> str:
        limit, spent, more = (
            round(getattr(part, passed), 6) for part in (self.limits, paid, request)
        )
        again = "run the same command again with a new budget"
        if self.name:
            again = (
                "run again under another CITELOOM_LLM_BUDGET_NAME (all runs that name"
                f" {self.name!r} share this one)"
            )
        return (
            f"{_REACHED}: {spent:,} of {limit:,} {passed} are spent, and the next request may take"
            f" {more:,} more ({paid}); answers so far are kept. Raise"
            f" CITELOOM_LLM_BUDGET_{passed.upper()}, or {again}: it goes on from here, and pays for"
            " no answer twice"
        )


def check_budget(settings: Settings, model: Model) -> None:
    """Raise SettingError if money has a limit and the model no price."""
    if settings.llm_budget_money and not model.prices.known:
        raise SettingError(
            f"CITELOOM_LLM_BUDGET_MONEY is set, but no price of {model.name}: write"
            f" {model.setting('price')} as read/written, in money for a million tokens"
        )


_budgets: dict[tuple[Path, str, Limits], Budget] = {}
_budgets_lock = threading.Lock()


def run_budget(settings: Settings, folder: Path) -> Budget:
    """The budget of this process's run: one per name and limit, for all stages and models.

    folder: of the named budgets. Raises PermanentFailure if they cannot be read.
    """
    name = settings.llm_budget_name
    limits = Limits(
        settings.llm_budget_calls, settings.llm_budget_tokens, settings.llm_budget_money
    )
    key = folder, name, limits
    with _budgets_lock:
        if key not in _budgets:
            _budgets[key] = Budget(limits, name, folder / "budgets.sqlite" if name else None)
        return _budgets[key]
