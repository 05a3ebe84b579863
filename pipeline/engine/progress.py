"""Progress events of a run: stages publish them, the command line and Dagster's log listen."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

# A log line every half minute says that a stage of hours is alive, and does not drown what else is
# in the log.
SECONDS_BETWEEN_LINES = 30


class Listener:
    """Receives every event of a run and ignores it; a subclass overrides the events that it needs.

    `outcome` is a `pipeline.engine.stage.Outcome`.
    """

    def planned(self, months: Sequence[str], stages: Sequence[str]) -> None:
        """The run will take these months through these stages; what was planned before stays."""

    def started(self, stage: str, month: str) -> None:
        """A stage begins on a month."""

    def advanced(self, stage: str, month: str, done: int, total: int | None) -> None:
        """So many of the month's rows are done, out of so many where that is known."""

    def finished(self, outcome: Any) -> None:
        """The month was computed or skipped."""

    def failed(self, stage: str, month: str, message: str, exit_code: int = 1) -> None:
        """The month ended with an error; `exit_code` is what the command is to end with."""

    def checked(self, check: Any, month: str, result: Any) -> None:
        """A check of a finished month was evaluated; `pipeline.engine.checks.Check` and its
        `CheckResult`.
        """

    def noted(self, message: str) -> None:
        """A message for the user who waits."""


class StageClock:
    """Measures a stage at work on a month, and estimates the time left."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._began = self._last_line = now()

    def describe(self, done: int, total: int | None) -> str:
        """How far the stage is, in words: `1,200 rows`, or `1,200 of 7,300, about 3 min left`."""
        if not total:
            return f"{done:,} rows"
        left = (total - done) * (self._now() - self._began) / done if done else 0
        return f"{done:,} of {total:,}" + (f", about {duration(left)} left" if left >= 1 else "")

    def is_due(self) -> bool:
        """Whether it is time for another line of a log."""
        if self._now() - self._last_line < SECONDS_BETWEEN_LINES:
            return False
        self._last_line = self._now()
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
    """Send the events of every stage that runs in this process within the block to `listener`."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def planned(months: Sequence[str], stages: Sequence[str]) -> None:
    """Publish that the run will take these months through these stages."""
    for listener in _listeners:
        listener.planned(months, stages)


def started(stage: str, month: str) -> None:
    """Publish that a stage begins on a month."""
    for listener in _listeners:
        listener.started(stage, month)


def advanced(stage: str, month: str, done: int, total: int | None = None) -> None:
    """Publish that so many of a month's rows are done, out of so many where that is known."""
    for listener in _listeners:
        listener.advanced(stage, month, done, total)


def finished(outcome: Any) -> None:
    """Publish that a month was computed or skipped."""
    for listener in _listeners:
        listener.finished(outcome)


def failed(stage: str, month: str, message: str, exit_code: int = 1) -> None:
    """Publish that a month ended with an error, and the exit code that the command is to end
    with.
    """
    for listener in _listeners:
        listener.failed(stage, month, message, exit_code)


def checked(check: Any, month: str, result: Any) -> None:
    """Publish that a check of a finished month was evaluated."""
    for listener in _listeners:
        listener.checked(check, month, result)


def noted(message: str) -> None:
    """Publish a message for the user who waits."""
    for listener in _listeners:
        listener.noted(message)
