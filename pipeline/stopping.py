"""What may stop a stage at work, and where it looks: a signal, which drains, and the loss of its run, which bars it.

The first SIGINT or SIGTERM asks the stage to end: work that is kept piece by piece (vectors, answers of a model) ends
after the piece under way, any other stage may finish. After `DRAIN_SECONDS` it is interrupted where it stands, and
`KILL_SECONDS` later the kernel ends the process, should even that not help. A second signal ends the process at once.
Not here: what is done about a run that was stopped (`pipeline.jobs`), and processes that end with their parent
(`pipeline.liveness`).
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from pipeline import progress
from pipeline.errors import PermanentFailure

# Service managers commonly wait 30 s before they kill. A stage has half of them; what follows, the run's record and its
# workers' end, took 6 s on two cores with nine busy processes.
DRAIN_SECONDS = 15.0
KILL_SECONDS = 12.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM)

Fence = Callable[[], str]


class Interrupted(BaseException):
    """The stage was asked to end, and does. No failure of it: what is kept of it stays, and nothing is recorded."""


class RunLost(PermanentFailure):
    """The run that a stage works for is no longer its own, so nothing of it may be put in place."""


class _State:
    """Of this process; signals belong to the whole of it."""

    requested = False
    overdue = False
    fences: list[Fence] = []  # noqa: RUF012 - one list for the process is what is meant


def requested() -> bool:
    """Whether this process was asked to end."""
    return _State.requested


def end_if_asked() -> None:
    """Raise Interrupted where this process was asked to end; called where all work so far is kept."""
    if _State.requested:
        raise Interrupted


@contextlib.contextmanager
def draining(then: Callable[[], None]) -> Iterator[None]:
    """Within it, a signal asks the block to end, as the module says; `then` is called where it ended well all the same.

    Without effect in a thread that is not the main one, where Python delivers no signal.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    asked, ended = threading.Event(), threading.Event()
    threading.Thread(target=_watch, args=(asked, ended), name="citeloom-drain", daemon=True).start()
    for number in _SIGNALS:
        signal.signal(number, _handler(asked))
    try:
        yield
    finally:
        ended.set()
        for number, handler in before.items():
            signal.signal(number, handler)
        if _State.requested:
            signal.setitimer(signal.ITIMER_REAL, KILL_SECONDS)
        asked.set()  # now that no signal does: an event is not to be set within its own setting
    if _State.requested:
        then()


def _handler(asked: threading.Event) -> Callable[[int, FrameType | None], Any]:
    """Does as little as can be: the block may have been stopped anywhere, with any lock in hand."""

    def handle(number: int, frame: FrameType | None) -> None:
        if _State.overdue:
            raise Interrupted
        if _State.requested:
            os._exit(128 + number)
        _State.requested = True
        # The kernel's own end of it, which asks no interpreter that may be deep in a library's loop.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, DRAIN_SECONDS + KILL_SECONDS)
        asked.set()

    return handle


def _watch(asked: threading.Event, ended: threading.Event) -> None:
    """Once the block is asked to end, tell so; interrupt it where it does not."""
    asked.wait()
    if ended.is_set():
        return
    progress.noted(f"asked to end: what is under way may take {DRAIN_SECONDS:.0f} s; a second signal ends it at once")
    if not ended.wait(DRAIN_SECONDS):
        _State.overdue = True
        # A signal of the system, which ends a wait for a socket; `_thread.interrupt_main` does not.
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


@contextlib.contextmanager
def fenced(fence: Fence) -> Iterator[None]:
    """Within it, `check_fence` asks `fence`, which says why the run is no longer this process's; empty where it is."""
    _State.fences.append(fence)
    try:
        yield
    finally:
        _State.fences.remove(fence)


def check_fence() -> None:
    """Raise RunLost where the run that this process works for was ended by others; asked before a month is placed."""
    for fence in _State.fences:
        reason = fence()
        if reason:
            raise RunLost(f"nothing is put in place: {reason}")
