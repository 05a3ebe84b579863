"""A folder of Qdrant Edge: its atomic creation, its turns between processes, disk space, and error
messages.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from pipeline.errors import CiteloomError, PermanentFailure, TransientFailure
from pipeline.storage.writing import move_into_place, write_whole

# Seconds to wait for another process, which lets go between two requests; only a long optimization
# takes longer.
PATIENCE = 5.0
# Seconds without a request after which a process lets go of the folder. Opening it reads all its
# pages, so a run keeps it open while other stages work on the next month. Another process that
# wants it gets it at once.
IDLE = 3600.0
# How often a process that has the folder open and no request looks whether another waits for it.
_LOOK_SECONDS = 0.25
# A process that another waits for keeps the folder for so many seconds, and for twice as long as
# opening it took: a load and a searching process would otherwise open the folder by turns and do
# little else. Never for so long that the patience of who waits ends.
SHORTEST_TURN, LONGEST_TURN = 0.5, PATIENCE / 2
# A request to let go that is older is that of a killed process: who waits repeats it ten times a
# second.
_LATEST_REQUEST = 1.0
# Edge writes through memory maps, so on a full disk the kernel kills the process (SIGBUS) and Edge
# reports no error. A new collection took 74 MB, most of it hash tables of payload indexes, and a
# segment of the write-ahead log is 32 MB. Before it optimizes, Edge checks the disk itself.
_FREE_BYTES = 64 << 20
_FREE_BYTES_TO_CREATE = 160 << 20
# Opening fills few of the holes that its sparse files have. A load that the full disk ended leaves
# more than this, so what it wrote can be searched.
_FREE_BYTES_TO_OPEN = 16 << 20

# Reasons in error messages of Edge and of the operating system, and what the user can do.
_WAYS_OUT = {
    os.strerror(
        errno.EACCES
    ): "let this user read and write the folder, or set CITELOOM_DATA to one of its own",
    os.strerror(
        errno.EPERM
    ): "let this user read and write the folder, or set CITELOOM_DATA to one of its own",
    os.strerror(
        errno.EROFS
    ): "make the file system writable, or set CITELOOM_DATA to a folder that is",
    os.strerror(errno.ENOSPC): "make room on that disk, then run again",
    os.strerror(errno.EDQUOT): "make room in this user's quota, then run again",
    os.strerror(errno.EFBIG): "raise the limit on a file's size (ulimit -f), then run again",
    os.strerror(errno.EMFILE): "raise the limit on open files (ulimit -n 65536), then run again",
    os.strerror(
        errno.ENFILE
    ): "the machine has no file handle left: close programs, then run again",
    os.strerror(errno.ENOMEM): "free some memory, or set CITELOOM_QDRANT_URL to a Qdrant server",
    os.strerror(errno.EIO): "the disk fails to read or write: check it, then run again",
    "Not enough space available for optimization": "make room on that disk, then run again",
}


def create_folder(folder: Path, fill: Callable[[Path], None]) -> None:
    """Create a folder unless it exists: `fill` writes it under a temporary name, and it is moved
    into place, so a killed process leaves no incomplete folder. Deletes what such a process left.
    Raises PermanentFailure if the folder cannot be created, TransientFailure if another process
    takes too long to create it.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_name(f"{folder.name}.lock"), timeout=60):
            for leftover in folder.parent.glob(f".{glob.escape(folder.name)}.*.new"):
                shutil.rmtree(leftover)
            if not folder.exists():
                check_disk_space(folder.parent, _FREE_BYTES_TO_CREATE)
                staged = folder.with_name(f".{folder.name}.{os.getpid()}.new")
                staged.mkdir()
                fill(staged)
                move_into_place(staged, folder)
    except Timeout as error:
        raise TransientFailure(
            f"another process has been creating {folder} for 60 s: run again"
        ) from error
    except OSError as error:
        raise PermanentFailure(unusable(folder, error)) from error


class IndexInUse(TransientFailure):
    """Another process keeps the folder open, most often an optimization after a load."""


class SharedShard:
    """The shard of a folder, which one process at a time can have open: opened by the first
    request, and closed once no request came for `idle` seconds or another process waits for the
    folder. Thread-safe.
    """

    def __init__(
        self,
        folder: Path,
        patience: float = PATIENCE,
        idle: float = IDLE,
        config: Callable[[], Any] = lambda: None,
    ) -> None:
        """patience: seconds to wait for another process that has the folder open. idle: seconds
        without a request after which the shard is closed. config: the configuration that the
        folder gets when it is opened; None leaves it as it is.
        """
        self.folder = folder
        self._config = config
        self._patience = patience
        self._idle = idle
        self._shard: Any = None
        self._held: FileLock | None = None
        self._users = 0
        self._turn_ends = 0.0
        self._idle_since = 0.0
        self._close_failure: CiteloomError | None = None
        self._changed = threading.Condition()

    def is_open(self) -> bool:
        """Whether this process has the shard open now."""
        return self._shard is not None

    @contextlib.contextmanager
    def open(self, *, wait: bool = True) -> Iterator[Any]:
        """The open shard, for one request.

        wait: whether to wait for another process that has it open. Raises IndexInUse if that takes
        too long, PermanentFailure if the folder cannot be opened, or could not be closed after an
        earlier request.
        """
        latest = time.monotonic() + (self._patience if wait else 0.0)
        with self._changed:
            if wait:
                self._give_turn(self._patience / 2)
            self._raise_close_failure()
            if self._shard is None:
                self._open(max(0.0, latest - time.monotonic()))
            self._users += 1
            shard = self._shard
        try:
            yield shard
        finally:
            with self._changed:
                self._users -= 1
                self._idle_since = time.monotonic()
                if self._is_turn_over():
                    self._close_unless_used()
                self._changed.notify_all()

    def close(self) -> None:
        """Close the shard, once the requests of other threads have ended. Raises PermanentFailure
        if its last data could not be written.
        """
        with self._changed:
            self._changed.wait_for(lambda: not self._users)
            self._close_unless_used()
            self._raise_close_failure()

    def _open(self, patience: float) -> None:
        self._held = hold_folder(self.folder, patience)
        try:
            self._shard, seconds = open_shard(self.folder, self._config())
        except BaseException:
            self._held.release()
            raise
        self._idle_since = time.monotonic()
        self._turn_ends = self._idle_since + min(max(SHORTEST_TURN, 2 * seconds), LONGEST_TURN)
        threading.Thread(target=self._close_when_idle, args=(self._shard,), daemon=True).start()

    def _give_turn(self, patience: float) -> None:
        """Close the shard if the turn is over, once the requests of other threads have ended.

        patience: seconds to wait for them. One that takes longer, such as an optimization, keeps
        the folder anyway.
        """
        end = time.monotonic() + patience
        while self._users and self._is_turn_over() and time.monotonic() < end:
            self._changed.wait(0.1)
        if self._is_turn_over():
            self._close_unless_used()

    def _is_turn_over(self) -> bool:
        return time.monotonic() >= self._turn_ends and _is_requested(self.folder)

    def _close_when_idle(self, shard: Any) -> None:
        with self._changed:
            while self._shard is shard:
                if self._users:
                    self._changed.wait()
                elif self._is_turn_over() or time.monotonic() >= self._idle_since + self._idle:
                    self._close_unless_used()
                else:
                    self._changed.wait(min(_LOOK_SECONDS, self._idle))

    def _close_unless_used(self) -> None:
        """Close the shard unless a request of another thread is open. A failure is raised by the
        next request.
        """
        if self._users or self._shard is None:
            return
        shard, self._shard = self._shard, None
        try:
            close_shard(self.folder, shard)
        except CiteloomError as error:
            self._close_failure = error
        finally:
            if self._held is not None:
                self._held.release()
        self._changed.notify_all()

    def _raise_close_failure(self) -> None:
        failure, self._close_failure = self._close_failure, None
        if failure is not None:
            raise failure


def hold_folder(folder: Path, patience: float) -> FileLock:
    """Take the lock of a folder; another process that has it is asked to release it.

    Edge's own lock is too late: Edge takes it after it has opened the segments, and opening them
    writes to the files of the process that uses the folder.

    patience: seconds to wait for another process. Raises IndexInUse if it takes longer,
    PermanentFailure if there is no place for the lock.
    """
    _give_way(folder, min(patience, _LATEST_REQUEST))
    end = time.monotonic() + patience
    held = FileLock(folder.with_name(f"{folder.name}.held"), blocking=False, thread_local=False)
    while True:
        with translate_errors(folder), contextlib.suppress(Timeout):
            held.acquire()
            return held
        if time.monotonic() >= end:
            raise IndexInUse(_lock_message(folder))
        with contextlib.suppress(OSError):  # then it is only let go of when idle
            _request_file(folder).touch()
        time.sleep(0.1)


def open_shard(folder: Path, config: Any = None) -> tuple[Any, float]:
    """Open the shard of a folder that this process holds.

    config: as for `SharedShard`. Returns the shard and the seconds that opening took. Raises
    IndexInUse if another program than citeloom has it open, PermanentFailure if the folder cannot
    be opened.
    """
    import qdrant_edge

    # Where a hole of a mapped file gets no block, the kernel kills the process (SIGBUS).
    # The files are looked at only where the disk is nearly full.
    with contextlib.suppress(FileNotFoundError):  # opening reports that the folder is gone
        if shutil.disk_usage(folder).free < _FREE_BYTES_TO_OPEN:
            check_disk_space(folder, min(_FREE_BYTES_TO_OPEN, _bytes_of_holes(folder)))
    started = time.monotonic()
    try:
        with translate_errors(folder):
            shard = qdrant_edge.EdgeShard.load(str(folder), config)
    except PermanentFailure as error:
        if "WouldBlock" in str(error.__cause__):
            raise IndexInUse(_lock_message(folder)) from error
        raise
    seconds = time.monotonic() - started
    with contextlib.suppress(OSError):
        _request_file(folder).unlink(missing_ok=True)
    _write_holder(folder)
    return shard, seconds


def _give_way(folder: Path, patience: float) -> None:
    """Wait until the process that requested the folder has it, for a limited time."""
    end = time.monotonic() + patience
    while _is_requested(folder) and time.monotonic() < end:
        time.sleep(0.02)


def _is_requested(folder: Path) -> bool:
    """Whether another process waits for the folder."""
    try:
        return time.time() - _request_file(folder).stat().st_mtime < _LATEST_REQUEST
    except OSError:
        return False


def _request_file(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.requested")


def close_shard(folder: Path, shard: Any) -> None:
    """Close a shard. Raises PermanentFailure if its last data could not be written."""
    with translate_errors(folder):
        shard.close()
    with contextlib.suppress(OSError):
        _holder_file(folder).unlink(missing_ok=True)


@contextlib.contextmanager
def translate_errors(folder: Path) -> Iterator[None]:
    """Replace exceptions of Edge by a PermanentFailure that names the folder.

    Edge raises bare `Exception`s, and for a panic in its Rust code a `PanicException`, which is
    only a BaseException.
    """
    try:
        yield
    except CiteloomError:
        raise
    except BaseException as error:
        if isinstance(error, Exception) or type(error).__name__ == "PanicException":
            raise PermanentFailure(unusable(folder, error)) from error
        raise


def _bytes_of_holes(folder: Path) -> int:
    """The bytes of a folder's sparse files that have no block on the disk yet."""
    holes = 0
    for file in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            status = file.stat()
            holes += max(0, status.st_size - 512 * status.st_blocks)
    return holes


def check_disk_space(folder: Path, needed: int = _FREE_BYTES) -> None:
    """Raise PermanentFailure if the disk of a folder has fewer than `needed` bytes free."""
    try:
        free = shutil.disk_usage(folder).free
    except FileNotFoundError:
        return  # opening the folder reports that it is gone
    if free < needed:
        raise PermanentFailure(
            f"the disk of {folder} has {free >> 20} MB left, and Qdrant Edge needs"
            f" {needed >> 20} MB to continue: make room on it, then run again"
        )


def unusable(folder: Path, error: BaseException) -> str:
    """The message for a folder that cannot be used: the reason, and what to do."""
    for reason, way_out in _WAYS_OUT.items():
        if reason in str(error):
            return f"the index in {folder} cannot be used: {reason} ({error}): {way_out}"
    return (
        f"the index in {folder} cannot be used ({error}): delete the folder and run citeloom run"
        " --months all, which loads it again from the tables"
    )


def _write_holder(folder: Path) -> None:
    """Record this process as the holder, for the message to others; without it that message is only
    less specific.
    """
    holder = {"pid": os.getpid(), "program": Path(sys.argv[0]).name}
    with contextlib.suppress(OSError):
        write_whole(_holder_file(folder), json.dumps(holder).encode())


def _holder_file(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.holder.json")


def holder_of(folder: Path) -> tuple[int, str] | None:
    """Process id and program of the folder's last holder; None if it has closed the folder. A
    killed process stays recorded.
    """
    try:
        holder = json.loads(_holder_file(folder).read_text())
        return int(holder["pid"]), str(holder["program"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _lock_message(folder: Path) -> str:
    holder = holder_of(folder)
    who = f"process {holder[0]} ({holder[1]})" if holder else "another process"
    return (
        f"the index in {folder} is held by {who}, and Qdrant Edge serves one process at a time:"
        " wait for it to end, or set CITELOOM_QDRANT_URL to a Qdrant server, which lifts the limit"
    )
