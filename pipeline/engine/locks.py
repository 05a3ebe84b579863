"""File locks that serialise work between processes of the command line and of Dagster, and leases
that divide months between machines.

The system releases a lock when its holder ends, also when it is killed. Locks do not reach other
machines, or not on every file system; a lease is a small file in the data root, which runs out
where its holder no longer renews it.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from pipeline.engine import shutdown
from pipeline.engine.progress import Notice, publish
from pipeline.engine.stage import Workspace
from pipeline.errors import CiteloomError, PermanentFailure, TransientFailure
from pipeline.settings import Settings
from pipeline.stage_names import plain_name
from pipeline.storage.store import DataPath
from pipeline.storage.writing import write_whole

LEASE_SECONDS = 900.0
"""For how long a lease holds without being renewed: far longer than the clocks of two machines
differ, or a store does not answer.
"""

_LONGEST_WAIT = 6 * 3600.0
# A lock that another process is about to release is not worth a message.
_SECONDS_BEFORE_NOTE = 2.0


def month_lock(workspace: Workspace, stage: str, month: str) -> AbstractContextManager[None]:
    """Hold a stage's month, so that it has one writer; wait for other processes."""
    file = workspace.cache("locks") / f"{stage}-{month}.lock"
    return file_lock(file, f"{plain_name(stage)} of {month}")


def pool_lock(workspace: Workspace, pool: str | None) -> AbstractContextManager[None]:
    """Hold a stage's pool where this machine has only one of it; wait for other processes."""
    if pool is None or not _is_single(pool, workspace.settings):
        return nullcontext()
    return file_lock(workspace.cache("locks") / f"pool-{pool}.lock", f"the pool {pool}")


def _is_single(pool: str, settings: Settings) -> bool:
    """Whether a pool stands for one thing of this machine: its GPU, the in-process index or the
    bundled model.

    A server takes several clients at once. arXiv's pace is kept request by request over all data
    roots of the machine (`pipeline.arxiv.rate_limited_client`), so its pool needs no lock of its
    own.
    """
    if pool == "gpu":
        return not settings.on_cluster  # a cluster hands out GPUs itself
    return (pool == "qdrant" and settings.qdrant_url is None) or (
        pool == "llm" and settings.bundled_llm
    )


@contextmanager
def file_lock(file: Path, name: str, *, if_busy: str = "") -> Iterator[None]:
    """Hold a lock file. name: of what it locks, for messages. if_busy: the message of a
    TransientFailure where another process holds it; empty to wait for that process.

    Raises PermanentFailure where the file system has no locks, or the file cannot be written.
    """
    lock = FileLock(file)
    try:
        try:
            if if_busy:
                lock.acquire(timeout=0)
            else:
                _acquire(lock, name)
        except Timeout as error:
            raise TransientFailure(if_busy) from error
        except (OSError, NotImplementedError) as error:
            raise PermanentFailure(
                f"{name} cannot be locked by {file} ({error}): set CITELOOM_LOCAL to a folder on a"
                " disk of this machine that can be written"
            ) from error
        yield
    finally:
        lock.release()


def _acquire(lock: FileLock, name: str) -> None:
    """Acquire a lock. Raises TransientFailure after six hours, Interrupted where this process is
    asked to end.
    """
    try:
        lock.acquire(timeout=_SECONDS_BEFORE_NOTE, cancel_check=shutdown.requested)
        return
    except Timeout:
        shutdown.end_if_asked()
    publish(Notice(f"{name} is in use by another process, which this one waits for"))
    try:
        lock.acquire(timeout=_LONGEST_WAIT, cancel_check=shutdown.requested)
    except Timeout as error:
        shutdown.end_if_asked()
        raise TransientFailure(
            f"{name} has been in use by another process for six hours ({lock.lock_file}): end it,"
            " then run again"
        ) from error


@contextmanager
def month_lease(
    workspace: Workspace,
    month: str,
    seconds: float = LEASE_SECONDS,
    now: Callable[[], float] = time.time,
) -> Iterator[str]:
    """Hold a month against the processes of all machines on the data root. Yields why it is not
    held, naming the process that has it; empty where it is held.

    The lease is renewed three times in `seconds`, and removed at the end of the block. A lease that
    ran out is taken over; also one of this machine, whose lock shows that its holder is gone. Two
    machines that take a free month in the same moment may both hold it: both then compute the same
    rows, and the month's file is one of the two, whole.
    """
    lock = workspace.cache("locks") / f"lease-{month}.lock"
    with ExitStack() as stack:
        busy = f"{month} is at work in another process of this machine"
        try:
            stack.enter_context(file_lock(lock, f"the lease of {month}", if_busy=busy))
        except TransientFailure as error:
            yield str(error)
            return
        lease = _Lease(
            workspace.root.path / "leases" / f"{month}.json", str(lock.parent), seconds, now
        )
        if holder := lease.take():
            yield f"{month} is at work: {holder}"
            return
        ended = threading.Event()
        renewal = threading.Thread(target=lease.renew_until, args=(ended,), daemon=True)
        renewal.start()
        try:
            yield ""
        finally:
            ended.set()
            renewal.join()
            with suppress(CiteloomError, OSError):  # else it runs out
                lease.release()


@dataclass(frozen=True, slots=True)
class _LeaseRecord:
    """The content of a lease's file. owner: of this one lease. locks: the folder of its holder's
    file locks. expires: seconds since 1970.
    """

    owner: str
    host: str
    pid: int
    locks: str
    expires: float


class _Lease:
    """This process's lease of one month, in a small file that is written whole."""

    def __init__(
        self, file: DataPath, locks: str, seconds: float, now: Callable[[], float]
    ) -> None:
        self._file, self._locks, self._seconds, self._now = file, locks, seconds, now
        self._owner = uuid.uuid4().hex

    def take(self) -> str:
        """Write the lease where it is free. Returns who holds it otherwise; empty where it is now
        held. The caller holds the month's lock in the folder `locks`.
        """
        other = self._read()
        # Of the same machine and locks, its holder would have the lock.
        here = socket.gethostname(), self._locks
        if other and (other.host, other.locks) != here and other.expires > self._now():
            return _describe(other)
        self._write()
        other = self._read()
        return _describe(other) if other and other.owner != self._owner else ""

    def renew_until(self, ended: threading.Event) -> None:
        """Renew the lease until the event is set, or another process has taken it over."""
        while not ended.wait(max(self._seconds / 3, 1.0)):
            with suppress(CiteloomError, OSError):  # the store may answer next time
                if not self._is_held():
                    return
                self._write()

    def release(self) -> None:
        """Remove the lease, unless another process has taken it over."""
        if self._is_held():
            self._file.unlink(missing_ok=True)

    def _is_held(self) -> bool:
        held = self._read()
        return held is not None and held.owner == self._owner

    def _read(self) -> _LeaseRecord | None:
        """The lease in the file; None where there is none, or a damaged one."""
        try:
            return _LeaseRecord(**json.loads(self._file.read_bytes()))
        except (FileNotFoundError, ValueError, TypeError):
            return None

    def _write(self) -> None:
        expires = self._now() + self._seconds
        record = _LeaseRecord(self._owner, socket.gethostname(), os.getpid(), self._locks, expires)
        write_whole(self._file, json.dumps(asdict(record)).encode())


def _describe(lease: _LeaseRecord) -> str:
    until = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(lease.expires))
    return f"process {lease.pid} of {lease.host} holds it until {until}, or longer if it goes on"
