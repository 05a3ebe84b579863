"""What runs in a worker process: it takes chunks from its parent and answers, within limits of time and memory."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pickle
import resource
import select
import signal
import sys
import traceback
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import Any

# Between two months a run does other things for minutes; workers that nobody needs give back their memory (90 MB each).
IDLE_SECONDS = 60
# The largest page there may be, 200 MB, took 1.2 GB to parse; what takes far more would fill the machine.
MEMORY_BYTES = 3 * 1024**3

_serving = False


def serve() -> None:
    """Answer what comes over the connection until nothing comes for a while or the parent ends.

    Two file descriptors are this process's arguments: the connection, and the lifeline that the parent holds open.
    """
    global _serving
    connection = Connection(int(sys.argv[1]))
    end_when_closed(int(sys.argv[2]))
    _limit_memory()
    _serving = True
    connection.send(True)
    with contextlib.suppress(EOFError, OSError):
        while connection.poll(IDLE_SECONDS):
            connection.send_bytes(_answer(connection.recv_bytes()))


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """End this worker where the block takes more processor time; without effect where no worker runs.

    Processor time, so that a busy machine fails no page. The kernel ends the process (SIGPROF): that needs no
    help of a library that is stuck in a loop of its own.
    """
    if not _serving:
        yield
        return
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _answer(request: bytes) -> bytes:
    """(True, result) or (False, exception), pickled."""
    try:
        work, chunk = pickle.loads(request)  # noqa: S301 - from the parent, over a pipe that nobody else has
        return pickle.dumps((True, work(chunk)), protocol=5)
    except Exception as error:
        error.add_note("In a worker process:\n" + traceback.format_exc())
        return _pickled_failure(error)


def _pickled_failure(error: Exception) -> bytes:
    """An exception as an answer; as a RuntimeError of the same words where it cannot be pickled and back."""
    answer: Any = (False, error)
    try:
        packed = pickle.dumps(answer)
        pickle.loads(packed)  # noqa: S301 - made one line above
    except Exception:
        told = RuntimeError(f"{type(error).__name__}: {error}")
        told.__notes__ = list(error.__notes__)
        return pickle.dumps((False, told))
    return packed


def end_when_closed(lifeline: int) -> None:
    """Have the kernel end this process (SIGIO) once the parent's end of the lifeline is closed, however that came.

    Nothing is ever written into it. `PR_SET_PDEATHSIG` would do so too, but as soon as the parent's thread ends.
    """
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
    readable, _, _ = select.select([lifeline], [], [], 0)
    if readable:  # the parent ended before the kernel was asked to watch
        sys.exit(0)


def _limit_memory() -> None:
    """RLIMIT_DATA, not RLIMIT_AS: allocators reserve address space by the gigabyte and never use it."""
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    limit = MEMORY_BYTES if most == resource.RLIM_INFINITY else min(MEMORY_BYTES, most)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_DATA, (limit, most))
