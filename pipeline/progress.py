"""Who is told how a run goes on. Stages tell; the command line listens. Not here: how it is shown."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Listener:
    """What hears of a run, and does nothing about it: a listener overrides what it cares for.

    `outcome` is a `pipeline.stages.Outcome`.
    """

    def started(self, stage: str, month: str) -> None:
        """A stage begins on a month."""

    def advanced(self, stage: str, month: str, rows: int) -> None:
        """So many rows of the month are made."""

    def finished(self, outcome: Any) -> None:
        """The month is done or was kept."""

    def failed(self, stage: str, month: str, message: str, exit_code: int = 1) -> None:
        """The month ended with an error; `exit_code` is what the command is to end with."""

    def noted(self, message: str) -> None:
        """Something that a user should know while they wait."""


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


def advanced(stage: str, month: str, rows: int) -> None:
    """Tell that so many rows of a month are made."""
    for listener in _listeners:
        listener.advanced(stage, month, rows)


def finished(outcome: Any) -> None:
    """Tell that a month is done or was kept."""
    for listener in _listeners:
        listener.finished(outcome)


def failed(stage: str, month: str, message: str, exit_code: int = 1) -> None:
    """Tell that a month ended with an error, and what the command is to end with."""
    for listener in _listeners:
        listener.failed(stage, month, message, exit_code)


def noted(message: str) -> None:
    """Tell something that a user should know while they wait."""
    for listener in _listeners:
        listener.noted(message)
