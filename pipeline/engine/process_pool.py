"""Process pool: chunks of work run in worker processes, within limits of processor time and memory.

Each worker is a pebble pool of one process, started with loky's context, which does not import the
caller's `__main__` into it. One process a pool, because the workers of a pebble pool share one
pipe: a worker that is killed while it sends its answer leaves half a message and a locked pipe, and
all others hang (pebble 5.2.3).
"""

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
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from typing import Generic, TypeVar

from loky import cpu_count
from loky.backend.context import LokyContext
from loky.backend.process import LokyProcess
from pebble import ProcessExpired, ProcessPool

from pipeline.errors import TransientFailure

T = TypeVar("T")
R = TypeVar("R")

# Answers wait for a slower one before them: with 4 chunks a worker, one that takes 3 times as long
# delays no other.
_CHUNKS_UNDER_WAY = 4
# The largest page there may be, 200 MB, took 1.2 GB to parse; what takes far more would fill the
# machine.
_MEMORY_BYTES = 3 * 1024**3
# Between two months a run does other things for minutes; unused workers give back their memory (90
# MB each).
_IDLE_SECONDS = 60
_START_ATTEMPTS = 3
_CHECK_SECONDS = 1.0
_ENVIRONMENT = {
    # A worker is one core's worth: threads that a library starts of its own would compete for the
    # cores.
    **dict.fromkeys(
        ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "ARROW_IO_THREADS"), "1"
    ),
    # loky starts workers with `python -m`, which would import modules from the current directory.
    "PYTHONSAFEPATH": "1",
}

_in_worker = False


@dataclass(frozen=True, slots=True)
class LostItem:
    """The answer of an item that ended its worker. reason: too_slow, out_of_memory or crashed.

    None of them is permanent: they depend on the machine's speed and memory too.
    """

    reason: str
    detail: str

    def describe(self, seconds: float) -> str:
        """The detail for the ledger, with the limit of time where that was reached."""
        limit = ""
        if self.reason == "too_slow":
            limit = f" {seconds:g} s of processor time"
        return f"{self.detail}{limit}; on another machine it may succeed"


def count_workers(setting: int) -> int:
    """The number of workers that a setting stands for; 0 is the cores that this process may use.

    These are the cores that it is bound to, or fewer where its container has a share of them.
    """
    return setting or int(cpu_count())


def map_chunks(
    work: Callable[[Sequence[T]], R], chunks: Iterable[Sequence[T]], workers: int
) -> Iterator[tuple[Sequence[T], R | LostItem]]:
    """Apply `work` to each chunk in worker processes; yield each with its answer, in order.

    `work` is a function of a module, or a `functools.partial` of one; it, the chunks and the
    answers travel pickled. An exception that it raises is raised here. A chunk that ends its worker
    is done again item by item, so one chunk may come back as several, and only the items at fault
    as `LostItem`. Chunks are taken as workers come free, a few ahead of the answers, so neither
    chunks nor answers pile up. Where the iteration is left early, the workers that are busy are
    killed. Raises TransientFailure where no worker can be started.
    """
    mapping = _Mapping(work)
    waiting: deque[Future[list[tuple[Sequence[T], R | LostItem]]]] = deque()
    # Processes inherit the signal mask of the thread that starts them: Ctrl-C reaches this process
    # and no worker.
    threads = ThreadPoolExecutor(
        workers, "worker", signal.pthread_sigmask, (signal.SIG_BLOCK, {signal.SIGINT})
    )
    try:
        for chunk in chunks:
            waiting.append(threads.submit(mapping.process, chunk))
            if len(waiting) >= _CHUNKS_UNDER_WAY * workers:
                yield from waiting.popleft().result()
        while waiting:
            yield from waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()
        mapping.stop()
        threads.shutdown()


def call_in_worker(function: Callable[[], R], seconds: float) -> R | LostItem:
    """The answer of a function that a worker process calls, within its limit of memory and so many
    seconds of processor time. Raises what the function raises, and as `map_chunks` does.
    """
    ((_, answer),) = map_chunks(partial(_call, function, seconds), [[None]], workers=1)
    return answer


def _call(function: Callable[[], R], seconds: float, chunk: Sequence[None]) -> R:
    with time_limit(seconds):
        return function()


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """End this worker where the block takes more processor time; without effect outside a worker.

    Processor time, so that no page fails because the machine is busy. The kernel ends the process
    (SIGPROF), even where a library is stuck in a loop of its own.
    """
    if not _in_worker:
        yield
        return
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def stop_idle_workers() -> None:
    """Stop the workers that wait for work. They also end after a minute without work, and with this
    process.
    """
    while _idle:
        _idle.pop().stop()


@dataclass(slots=True)
class _Mapping(Generic[T, R]):
    """One call of `map_chunks`; each of its threads has one worker busy at a time."""

    work: Callable[[Sequence[T]], R]
    running: set[Future[bytes]] = field(default_factory=set)
    stopped: bool = False

    def process(self, chunk: Sequence[T]) -> list[tuple[Sequence[T], R | LostItem]]:
        """The answer to a chunk, or to each of its items where the whole chunk ended its worker."""
        try:
            return [(chunk, self._run(chunk))]
        except ProcessExpired as death:
            if len(chunk) == 1:
                return [(chunk, self._run_again(chunk, death))]
        return [answer for item in chunk for answer in self.process([item])]

    def _run_again(self, item: Sequence[T], death: ProcessExpired) -> R | LostItem:
        """A killed worker need not be at fault: Linux kills the process that takes most memory."""
        if death.exitcode == -signal.SIGKILL:
            try:
                return self._run(item)
            except ProcessExpired as second_death:
                death = second_death
        return _lost_item(death.exitcode)

    def _run(self, chunk: Sequence[T]) -> R:
        """The answer of a worker to a chunk. Raises ProcessExpired where the worker died while it
        worked.
        """
        succeeded, answer = pickle.loads(self._send(pickle.dumps((self.work, chunk), protocol=5)))  # noqa: S301
        if succeeded:
            return answer  # type: ignore[no-any-return]
        raise answer

    def _send(self, request: bytes) -> bytes:
        """Have a worker answer a request. A worker that ended before it began the work is replaced
        by a new one.
        """
        cause: BaseException | None = None
        for attempt in range(_START_ATTEMPTS):
            try:
                return self._send_to(_Worker() if attempt else _idle_or_new(), request)
            except ProcessExpired as death:
                if death.exitcode != -signal.SIGALRM:
                    raise
                cause = death
            except (OSError, RuntimeError) as error:
                cause = error.__cause__ or error
        raise TransientFailure(f"no worker process can be started ({cause}): run again") from cause

    def _send_to(self, worker: _Worker, request: bytes) -> bytes:
        try:
            future = worker.submit(request)
            self.running.add(future)
            try:
                if self.stopped:
                    future.cancel()
                answer = worker.wait(future)
            finally:
                self.running.discard(future)
        except BaseException:
            worker.stop()
            raise
        _idle.append(worker)
        return answer

    def stop(self) -> None:
        """Cancel what is under way; each thread then stops its worker."""
        self.stopped = True
        for future in tuple(self.running):
            future.cancel()


def _lost_item(exit_code: int) -> LostItem:
    """The meaning of a dead worker's exit code; a code below 0 is a signal."""
    if exit_code == -signal.SIGPROF:
        return LostItem("too_slow", "it took longer than it may")
    if exit_code == -signal.SIGKILL:
        return LostItem(
            "out_of_memory", "the worker was killed, as Linux does where memory runs out"
        )
    ended = signal.Signals(-exit_code).name if exit_code < 0 else f"exit code {exit_code}"
    return LostItem("crashed", f"the worker ended with {ended}")


class _Worker:
    """One worker process, started with the first request."""

    def __init__(self) -> None:
        context = LokyContext()
        context.Process = partial(LokyProcess, env=_ENVIRONMENT)
        lifeline, self._lifeline = context.Pipe(duplex=False)
        self._pool = ProcessPool(
            1, initializer=_initialize_worker, initargs=(lifeline,), context=context
        )

    def submit(self, request: bytes) -> Future[bytes]:
        """Raises OSError or RuntimeError where the process does not run or cannot be started."""
        return self._pool.schedule(_answer, args=(request,))

    def wait(self, future: Future[bytes]) -> bytes:
        """The answer to a request. Raises RuntimeError where the process did not begin the work."""
        while True:
            try:
                return future.result(timeout=_CHECK_SECONDS)
            except TimeoutError:
                # pebble 5.2.3 never resolves a future that is scheduled at the moment when it finds
                # its worker dead.
                if not self.is_alive():
                    raise RuntimeError("the process ended at its start") from None

    def is_alive(self) -> bool:
        """Whether the process runs, as far as is known; its end is noticed within 0.1 s."""
        return self._pool.active

    def stop(self) -> None:
        """End the process at once, also at work."""
        self._pool.stop()  # type: ignore[no-untyped-call]
        self._pool.join()


_idle: deque[_Worker] = deque()


def _idle_or_new() -> _Worker:
    """The idle worker that worked last; a new one where none is idle."""
    while True:
        try:
            worker = _idle.pop()
        except IndexError:
            return _Worker()
        if worker.is_alive():
            return worker
        worker.stop()


# A fork of this process must not talk to its workers.
os.register_at_fork(after_in_child=_idle.clear)


def _initialize_worker(lifeline: Connection) -> None:
    """Prepare a worker process: limits, and what ends it."""
    global _in_worker
    _in_worker = True
    # pebble's own handler of SIGTERM would wait for a library that is stuck.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _end_when_closed(lifeline.fileno())
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    limit = _MEMORY_BYTES if most == resource.RLIM_INFINITY else min(_MEMORY_BYTES, most)
    # Not RLIMIT_AS: allocators reserve address space by the gigabyte and never use it.
    resource.setrlimit(resource.RLIMIT_DATA, (limit, most))
    # What libraries print does not belong in the output of a command.
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)


def _end_when_closed(lifeline: int) -> None:
    """Have the kernel end this process (SIGIO) once the parent's end of a pipe is closed.

    Nothing is ever written into the pipe. `PR_SET_PDEATHSIG` would end the process as soon as the
    *thread* that started it ends.
    """
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
    readable, _, _ = select.select([lifeline], [], [], 0)
    if readable:  # the parent died before the kernel watched the pipe
        sys.exit(0)


def _answer(request: bytes) -> bytes:
    """Run the work of a request in the worker: (True, answer) or (False, exception), pickled.

    Pickled here, since a value that cannot be pickled or unpickled would break pebble's pool.
    """
    signal.alarm(0)
    try:
        work, chunk = pickle.loads(request)  # noqa: S301 - from the parent
        return pickle.dumps((True, work(chunk)), protocol=5)
    except (Exception, SystemExit) as error:
        error.add_note("In a worker process:\n" + traceback.format_exc())
        return _pickled_failure(error)
    finally:
        # Ends a worker that is idle for so long; SIGALRM is not handled.
        signal.alarm(_IDLE_SECONDS)


def _pickled_failure(error: Exception | SystemExit) -> bytes:
    """An exception as an answer; a RuntimeError where the caller could not raise it."""
    with contextlib.suppress(Exception):
        pickled = pickle.dumps((False, error))
        pickle.loads(pickled)  # noqa: S301 - made one line above
        if isinstance(error, Exception):
            return pickled
    substitute = RuntimeError(f"{type(error).__name__}: {error}")
    substitute.__notes__ = list(error.__notes__)
    return pickle.dumps((False, substitute))
