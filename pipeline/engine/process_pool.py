"""Worker processes: chunks of work go out, answers come back in order, and what kills its worker harms nothing else.

Here: starting workers, keeping them from one stage to the next, handing out chunks, doing a lost chunk again item by
item.

Written by hand because no library has it all: multiprocessing and pebble import the caller's `__main__` into every
worker (1.1 s of Dagster's webserver, where the work's modules take 0.2 s); with loky or concurrent.futures one dead
worker fails every chunk that is under way.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing.connection import Pipe
from pathlib import Path
from typing import TypeVar

from pipeline.errors import TransientFailure

T = TypeVar("T")
R = TypeVar("R")

# Answers wait for a slower one before them: with 4 chunks a worker, one that takes 3 times as long holds nobody up.
_CHUNKS_UNDER_WAY = 4
# Each worker is one core's worth: a library that starts threads of its own would have them fight for the cores.
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "ARROW_IO_THREADS"), "1")
_SECONDS_TO_END = 10
_START = "from pipeline.engine.worker_process import serve; serve()"


@dataclass(frozen=True, slots=True)
class Lost:
    """What stands for the answer of an item that ended its worker. `reason`: too_slow, out_of_memory or crashed.

    None of them is sure to come again: they depend on the machine's speed and memory too.
    """

    reason: str
    detail: str


def count_workers(wanted: int) -> int:
    """How many workers `wanted` means: itself, or for 0 as many as this process may use cores."""
    return wanted or usable_cores()


def usable_cores(quota: Path = Path("/sys/fs/cgroup/cpu.max")) -> int:
    """Cores that this process may use: those it is bound to, or fewer where its container has a share of them.

    quota: file of Linux' control groups with the share, `200000 100000` for two cores, `max 100000` for all
    (https://docs.kernel.org/admin-guide/cgroup-v2.html).
    """
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        share, period = quota.read_text().split()
        return max(1, min(bound, round(int(share) / int(period))))
    except (OSError, ValueError):  # no control groups, or `max`
        return bound


def map_chunks(
    work: Callable[[Sequence[T]], R], chunks: Iterable[Sequence[T]], workers: int
) -> Iterator[tuple[Sequence[T], R | Lost]]:
    """What `work` makes of each chunk, in the order of the chunks, by so many worker processes.

    `work` is a function of a module, or a `functools.partial` of one; it, the chunks and the answers travel pickled.
    An exception that it raises is raised here. A chunk that ends its worker is done again item by item, so that one
    chunk may come back as several, and only the items at fault as `Lost`. Chunks are taken as workers come free, a few
    ahead of the answers, so neither chunks nor answers pile up. Where the iteration is left early, what is under way
    is killed. Raises TransientFailure where no worker can be started.
    """
    crew = _Crew()
    waiting: deque[Future[list[tuple[Sequence[T], R | Lost]]]] = deque()
    threads = ThreadPoolExecutor(workers, thread_name_prefix="worker")
    try:
        for chunk in chunks:
            waiting.append(threads.submit(crew.do, work, chunk))
            if len(waiting) >= _CHUNKS_UNDER_WAY * workers:
                yield from waiting.popleft().result()
        while waiting:
            yield from waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()
        crew.stop()
        threads.shutdown()


class _Died(Exception):
    """A worker ended before it answered."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


@dataclass(slots=True)
class _Crew:
    """The workers that one mapping has under way."""

    busy: set[_Worker] = field(default_factory=set)
    stopped: bool = False

    def do(self, work: Callable[[Sequence[T]], R], chunk: Sequence[T]) -> list[tuple[Sequence[T], R | Lost]]:
        """The answer to a chunk, or to each of its items where the chunk as a whole ended its worker."""
        try:
            return [(chunk, self._ask(work, chunk))]
        except _Died as death:
            if len(chunk) == 1 or self.stopped:
                return [(chunk, self._ask_once_more(work, chunk, death))]
        return [answer for item in chunk for answer in self.do(work, [item])]

    def _ask_once_more(self, work: Callable[[Sequence[T]], R], item: Sequence[T], death: _Died) -> R | Lost:
        """Where a worker was killed from outside, its item need not be at fault: Linux ends whoever takes most."""
        if death.code == -signal.SIGKILL and not self.stopped:
            try:
                return self._ask(work, item)
            except _Died as again:
                death = again
        return _lost(death.code)

    def stop(self) -> None:
        """End what is under way; nothing is begun any more."""
        self.stopped = True
        for worker in list(self.busy):
            worker.end()

    def _ask(self, work: Callable[[Sequence[T]], R], chunk: Sequence[T]) -> R:
        while True:
            worker = _idle_or_new()
            self.busy.add(worker)
            try:
                if self.stopped:
                    raise _Died(worker.end())
                return worker.ask(work, chunk)
            except _Died as death:
                # 0: it had waited long enough, and ended by itself just before it was asked.
                if death.code != 0 or self.stopped:
                    raise
            finally:
                self.busy.discard(worker)
                if worker.is_alive():
                    _idle.append(worker)


def _lost(code: int) -> Lost:
    """What the exit code of a dead worker says; codes below 0 are signals."""
    if code == -signal.SIGPROF:
        return Lost("too_slow", "it took longer than it may")
    if code == -signal.SIGKILL:
        return Lost("out_of_memory", "the worker was killed, as Linux does where memory runs out")
    ended = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return Lost("crashed", f"the worker ended with {ended}")


class _Worker:
    """One worker process. It ends by itself where nobody asks it anything for a while, and with this process."""

    def __init__(self) -> None:
        self._connection, theirs = Pipe()
        reading, self._lifeline = os.pipe()
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `end`
        self._ready = False
        self._ending = threading.Lock()
        self.last_words = ""
        try:
            # A process group of its own: Ctrl-C is for this process, which then ends its workers.
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _START, str(theirs.fileno()), str(reading)],
                pass_fds=(theirs.fileno(), reading), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=self._said, env=_environment(), process_group=0,
            )  # fmt: skip
        except OSError as error:
            os.close(self._lifeline)
            self._said.close()
            raise TransientFailure(f"no worker process can be started ({error.strerror}): run again") from error
        finally:
            theirs.close()
            os.close(reading)

    def ask(self, work: Callable[[Sequence[T]], R], chunk: Sequence[T]) -> R:
        """What `work` makes of a chunk. Raises _Died where the worker does not live to answer."""
        self._wait_until_ready()
        try:
            self._connection.send((work, chunk))
            worked, answer = self._connection.recv()
        except (EOFError, OSError):
            # It is on its way out: killing it now would hide what ended it.
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_SECONDS_TO_END)
            raise _Died(self.end()) from None
        if worked:
            return answer  # type: ignore[no-any-return]
        raise answer

    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    def end(self) -> int:
        """End the process, if it has not ended; its exit code. Safe to call again, and from any thread."""
        with self._ending:
            if not self._said.closed:
                os.close(self._lifeline)
                self._process.kill()
                self._process.wait()
                self._said.seek(0)
                self.last_words = self._said.read().decode(errors="replace").strip().rpartition("\n")[2]
                self._said.close()
        return self._process.returncode

    def _wait_until_ready(self) -> None:
        """Raises TransientFailure where the process ended before it could take any work."""
        if self._ready:
            return
        try:
            self._ready = self._connection.recv()
        except (EOFError, OSError):
            code = self.end()
            raise TransientFailure(
                f"a worker process did not start (exit code {code}; {self.last_words or 'it said nothing'}): run again"
            ) from None


def _environment() -> dict[str, str]:
    """This process's environment, with its import path."""
    path = os.pathsep.join(folder or str(Path.cwd()) for folder in sys.path)
    return {**os.environ, **_ONE_THREAD, "PYTHONPATH": path}


_idle: deque[_Worker] = deque()


def _idle_or_new() -> _Worker:
    """A worker that waits for work, the one that worked last; a new one where none does."""
    while True:
        try:
            worker = _idle.pop()
        except IndexError:
            return _Worker()
        if worker.is_alive():
            return worker
        worker.end()


@atexit.register
def end_idle_workers() -> None:
    """End the workers that wait for work. They would end by themselves after a while, and with this process."""
    while _idle:
        _idle.pop().end()


# A fork of this process must not talk to its workers.
os.register_at_fork(after_in_child=_idle.clear)
