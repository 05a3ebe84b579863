"""What may stop a stage at work, and where it looks: a signal, which drains, and the loss of its run, which bars it.

The first SIGINT or SIGTERM asks the stage to end: work that is kept piece by piece (vectors, answers of a model) ends
after the piece under way, any other stage may finish. After `DRAIN_SECONDS` it is interrupted where it stands, and
`KILL_SECONDS` later the kernel ends the process, should even that not help. A second signal ends the process at once.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType

from pipeline.engine import progress
from pipeline.errors import PermanentFailure

# Service managers commonly wait 30 s before they kill. A stage has half of them; what follows, the run's record and its
# workers' end, took 6 s on two cores with nine busy processes.
DRAIN_SECONDS = 15.0
KILL_SECONDS = 12.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_NOTHING = 0

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
    reading, writing = os.pipe()
    os.set_blocking(writing, False)  # as `set_wakeup_fd` asks
    watch = _Watch(reading)
    threading.Thread(target=watch.run, name="citeloom-drain", daemon=True).start()
    others = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    before = {number: signal.signal(number, _handle) for number in _SIGNALS}
    try:
        yield
    finally:
        watch.ended.set()
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(others)
        os.close(writing)
        if _State.requested:
            signal.setitimer(signal.ITIMER_REAL, KILL_SECONDS)
    if _State.requested:
        then()


def _handle(number: int, frame: FrameType | None) -> None:
    """Does as little as can be: the block may have been stopped anywhere, with any lock in hand.

    The rest is for `_Watch`: the kernel may give a signal to a thread that is not the main one, which then runs no
    handler until it wakes for a reason of its own, such as a model's answer.
    """
    if _State.overdue:
        raise Interrupted
    _State.requested = True
    # The kernel's own end of it, which asks no interpreter that may be deep in a library's loop.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)


class _Watch:
    """What a thread of its own does about signals, whose numbers come over a pipe as soon as there is one."""

    def __init__(self, reading: int) -> None:
        self._reading = reading
        self._requested = _State.requested
        self.ended = threading.Event()

    def run(self) -> None:
        """Have the block end, and interrupt it where it does not; until the pipe is closed."""
        with os.fdopen(self._reading, "rb", buffering=0):
            again = self._next()
            if again is not None and not self._requested:
                self._ask()
                again = self._next(DRAIN_SECONDS)
                if again == _NOTHING:
                    self._interrupt()
                    self._next()  # the interruption itself
                    again = self._next()
            if again is not None:
                os._exit(128 + again)

    def _ask(self) -> None:
        _State.requested = True
        signal.setitimer(signal.ITIMER_REAL, DRAIN_SECONDS + KILL_SECONDS)
        progress.noted(
            f"asked to end: what is under way may take {DRAIN_SECONDS:.0f} s; a second signal ends it at once"
        )

    def _interrupt(self) -> None:
        """By a signal of the system, which ends a wait for a socket; `_thread.interrupt_main` does not."""
        _State.overdue = True
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    def _next(self, seconds: float | None = None) -> int | None:
        """The next signal that asks to end; _NOTHING where none comes in time, None once the block has ended."""
        latest = None if seconds is None else time.monotonic() + seconds
        while True:
            left = None if latest is None else max(0.0, latest - time.monotonic())
            if not select.select([self._reading], [], [], left)[0]:
                return _NOTHING
            number = os.read(self._reading, 1)
            if not number or self.ended.is_set():
                return None
            if number[0] in _SIGNALS:
                return number[0]


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
