"""Who is told how a run goes on. Stages tell; the command line listens."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

# A log line every half minute says that a stage of hours is alive, and does not drown what else is in the log.
SECONDS_BETWEEN_LINES = 30


class Listener:
    """What hears of a run, and does nothing about it: a listener overrides what it cares for.

    `outcome` is a `pipeline.engine.stage.Outcome`.
    """

    def started(self, stage: str, month: str) -> None:
        """A stage begins on a month."""

    def advanced(self, stage: str, month: str, done: int, total: int | None) -> None:
        """So many of the month's rows are done, out of so many where that is known."""

    def finished(self, outcome: Any) -> None:
        """The month is done or was kept."""

    def failed(self, stage: str, month: str, message: str, exit_code: int = 1) -> None:
        """The month ended with an error; `exit_code` is what the command is to end with."""

    def checked(self, check: Any, month: str, result: Any) -> None:
        """A check of a finished month was evaluated; `pipeline.engine.checks.Check` and its `CheckResult`."""

    def noted(self, message: str) -> None:
        """Something that a user should know while they wait."""


class StageClock:
    """The time that a stage has taken on a month, and will."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._began = self._told = now()

    def tell(self, done: int, total: int | None) -> str:
        """How far the stage is: `1,200 rows`, or `1,200 of 7,300, about 3 min left`."""
        if not total:
            return f"{done:,} rows"
        left = (total - done) * (self._now() - self._began) / done if done else 0
        return f"{done:,} of {total:,}" + (f", about {duration(left)} left" if left >= 1 else "")

    def is_due(self) -> bool:
        """Whether it is time to tell it again where each telling stays, as in a log."""
        if self._now() - self._told < SECONDS_BETWEEN_LINES:
            return False
        self._told = self._now()
        return True


def duration(seconds: float) -> str:
    """A length of time in its largest unit: `40 s`, `3 min`, `2 h`, `17 d`."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


_listeners: list[Listener] = []


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Tell `listener` of every stage that runs in this process within the block."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def started(stage: str, month: str) -> None:
    """Tell that a stage begins on a month."""
    for listener in _listeners:
        listener.started(stage, month)


def advanced(stage: str, month: str, done: int, total: int | None = None) -> None:
    """Tell that so many of a month's rows are done, out of so many where that is known."""
    for listener in _listeners:
        listener.advanced(stage, month, done, total)


def finished(outcome: Any) -> None:
    """Tell that a month is done or was kept."""
    for listener in _listeners:
        listener.finished(outcome)


def failed(stage: str, month: str, message: str, exit_code: int = 1) -> None:
    """Tell that a month ended with an error, and what the command is to end with."""
    for listener in _listeners:
        listener.failed(stage, month, message, exit_code)


def checked(check: Any, month: str, result: Any) -> None:
    """Report that a check of a finished month was evaluated."""
    for listener in _listeners:
        listener.checked(check, month, result)


def noted(message: str) -> None:
    """Tell something that a user should know while they wait."""
    for listener in _listeners:
        listener.noted(message)
