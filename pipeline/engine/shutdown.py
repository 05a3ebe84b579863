"""End a process at work: drain on a signal, bar it once its run is lost, die with its parent.

The first SIGINT or SIGTERM asks the work to end: what is saved piece by piece (vectors, answers of
a model) ends after the piece under way, any other stage may finish. After `DRAIN_SECONDS` it is
interrupted where it is, and `KILL_SECONDS` later the kernel ends the process. A second signal ends
the process at once.
"""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType

from pipeline.engine.progress import Notice, publish
from pipeline.errors import PermanentFailure

# Service managers commonly wait 30 s before they kill. A stage has half of them; what follows, the
# end of worker processes and of the run's record, took 6 s on two cores with nine busy processes.
DRAIN_SECONDS = 15.0
KILL_SECONDS = 12.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_NO_SIGNAL = 0
_PR_SET_PDEATHSIG = 1  # <linux/prctl.h>

Fence = Callable[[], str]


class Interrupted(BaseException):
    """The work was asked to end, and does. Not a failure: what is saved stays, and nothing is
    recorded.
    """


class RunLost(PermanentFailure):
    """The run that a stage works for was ended by others, so nothing of it may be put in place."""


class _ProcessState:
    """State of this process; signals belong to the whole of it."""

    requested = False
    overdue = False
    fences: list[Fence] = []  # noqa: RUF012 - one list for the process is intended


def requested() -> bool:
    """Whether this process was asked to end."""
    return _ProcessState.requested


def end_if_asked() -> None:
    """Raise Interrupted where this process was asked to end; call it where all work is saved."""
    if _ProcessState.requested:
        raise Interrupted


@contextlib.contextmanager
def draining() -> Iterator[None]:
    """Within the block, a signal asks it to end; afterwards `requested` is true if one came.

    Without effect in a thread that is not the main one, where Python delivers no signal.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)  # as `set_wakeup_fd` requires
    watch = _SignalWatch(reading)
    threading.Thread(target=watch.run, name="citeloom-drain", daemon=True).start()
    previous_fd = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    previous_handlers = {number: signal.signal(number, _handle) for number in _SIGNALS}
    try:
        yield
    finally:
        watch.ended.set()
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(previous_fd)
        os.close(writing)
        if _ProcessState.requested:
            signal.setitimer(signal.ITIMER_REAL, KILL_SECONDS)


def _handle(number: int, frame: FrameType | None) -> None:
    """Set flags only: the block may have been stopped anywhere, with any lock in hand.

    The rest is `_SignalWatch`'s: the kernel may give a signal to a thread that is not the main one,
    and then no handler runs until the main thread wakes for a reason of its own, such as a model's
    answer.
    """
    if _ProcessState.overdue:
        raise Interrupted
    _ProcessState.requested = True
    # SIGALRM then ends the process without any help of an interpreter that may be deep in a
    # library's loop.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)


class _SignalWatch:
    """Reacts to signals in a thread of its own; their numbers come over a pipe."""

    def __init__(self, reading: int) -> None:
        self._reading = reading
        self._already_requested = _ProcessState.requested
        self.ended = threading.Event()

    def run(self) -> None:
        """Ask the block to end, and interrupt it where it does not; until the pipe is closed."""
        with os.fdopen(self._reading, "rb", buffering=0):
            number = self._next_signal()
            if number is not None and not self._already_requested:
                self._ask_to_end()
                number = self._next_signal(DRAIN_SECONDS)
                if number == _NO_SIGNAL:
                    self._interrupt()
                    self._next_signal()  # the interruption itself
                    number = self._next_signal()
            if number is not None:
                os._exit(128 + number)

    def _ask_to_end(self) -> None:
        _ProcessState.requested = True
        signal.setitimer(signal.ITIMER_REAL, DRAIN_SECONDS + KILL_SECONDS)
        publish(
            Notice(
                f"asked to end: the work under way may take {DRAIN_SECONDS:.0f} s; a second signal"
                " ends it at once"
            )
        )

    def _interrupt(self) -> None:
        """Interrupt by a signal, which ends a wait for a socket; `interrupt_main` does not."""
        _ProcessState.overdue = True
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    def _next_signal(self, seconds: float | None = None) -> int | None:
        """The next signal; _NO_SIGNAL where none comes in time, None once the block has ended."""
        latest = None if seconds is None else time.monotonic() + seconds
        while True:
            timeout = None if latest is None else max(0.0, latest - time.monotonic())
            if not select.select([self._reading], [], [], timeout)[0]:
                return _NO_SIGNAL
            number = os.read(self._reading, 1)
            if not number or self.ended.is_set():
                return None
            if number[0] in _SIGNALS:
                return number[0]


@contextlib.contextmanager
def fenced(fence: Fence) -> Iterator[None]:
    """Within the block, `check_fence` calls `fence`: why the run is lost, or empty."""
    _ProcessState.fences.append(fence)
    try:
        yield
    finally:
        _ProcessState.fences.remove(fence)


def check_fence() -> None:
    """Raise RunLost where others ended this process's run; call it before a month is placed."""
    for fence in _ProcessState.fences:
        reason = fence()
        if reason:
            raise RunLost(f"nothing is put in place: {reason}")


def end_with_parent() -> None:
    """Have the kernel kill this process (SIGKILL) as soon as the process that `multiprocessing`
    started it from ends; at once if it has ended already. Without effect where `multiprocessing`
    did not start it.

    By prctl(2), on Linux alone: the signal comes when the *thread* that started this process ends.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent.pid:
        os._exit(1)
