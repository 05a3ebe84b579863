"""Events of a run: stages publish them, the command line and Dagster's log listen."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pipeline.text import number_of

# A log line every half minute says that a stage of hours is alive, and does not drown what else is
# in the log.
SECONDS_BETWEEN_LINES = 30


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of running a stage on a month.

    skipped: the month was up to date and left as it was. notes, measured: as in `Job`.
    """

    stage: str
    month: str
    rows: int
    skipped: bool
    seconds: float
    bytes: int
    left_out: Mapping[str, int]
    notes: Mapping[str, Any]
    measured: Mapping[str, Any]

    @property
    def disabled(self) -> bool:
        """Whether the settings disable this stage: its month exists, without rows."""
        return "off" in self.notes


class Event:
    """Something that happens in a run. `engine.checks` adds `CheckEvaluated`."""


@dataclass(frozen=True, slots=True)
class RunPlanned(Event):
    """The run will take these months through these stages; what was planned before stays."""

    months: Sequence[str]
    stages: Sequence[str]


@dataclass(frozen=True, slots=True)
class StageStarted(Event):
    """A stage begins on a month."""

    stage: str
    month: str


@dataclass(frozen=True, slots=True)
class StageAdvanced(Event):
    """The progress of a month: what is done, as `Job.expect` counts, and the total if known."""

    stage: str
    month: str
    done: int
    total: int | None = None


@dataclass(frozen=True, slots=True)
class StageFinished(Event):
    """The month was computed or skipped."""

    outcome: Outcome


@dataclass(frozen=True, slots=True)
class StageFailed(Event):
    """The month ended with an error. exit_code: of the command that runs the stage."""

    stage: str
    month: str
    message: str
    exit_code: int = 1


@dataclass(frozen=True, slots=True)
class AllMonthsFinished(Event):
    """The work over all months of a stage is done (`engine.finish`)."""

    stage: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Notice(Event):
    """A message for the user who waits."""

    message: str


Listener = Callable[[Event], None]
"""Receives every event of a run; it ignores those that it does not need."""

_listeners: list[Listener] = []


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Send the events of every stage that runs in this process within the block to `listener`."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def publish(event: Event) -> None:
    """Send an event to every listener."""
    for listener in _listeners:
        listener(event)


class StageClock:
    """Measures a stage at work on a month, and estimates the time left."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._began = self._last_line = now()

    def describe(self, done: int, total: int | None) -> str:
        """The stage's progress in words: `1,200 rows`, or `1,200 of 7,300, about 3 min left`."""
        if not total:
            return number_of(done, "row")
        progress = f"{done:,} of {total:,}"
        if not done:
            return progress
        seconds_left = (total - done) * (self._now() - self._began) / done
        if seconds_left < 1:
            return progress
        return f"{progress}, about {duration(seconds_left)} left"

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
