"""A folder of Qdrant Edge: made whole or not at all, held by one process at a time, with room on its disk.

Here are its lock, its holder's name and the words for what goes wrong.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from pipeline.errors import CiteloomError, PermanentFailure, TransientFailure
from pipeline.storage.writing import move_into_place, write_whole

# How long to wait for another process: a search or a small month is over by then, a long load is not.
PATIENCE = 10.0
# Edge writes through memory maps, so a full disk is no error that it could report: the kernel kills the process
# (SIGBUS). A new collection took 74 MB, most of it hash tables of payload indexes, and a write-ahead log's segment is
# 32 MB. Before it optimizes, Edge looks for room itself.
_ROOM = 64 << 20
_ROOM_OF_A_NEW_ONE = 160 << 20

_OWN_ROOM = "Not enough space available for optimization"
_WAYS_OUT = {
    os.strerror(errno.EACCES): "let this user read and write the folder, or set CITELOOM_DATA to one of its own",
    os.strerror(errno.EPERM): "let this user read and write the folder, or set CITELOOM_DATA to one of its own",
    os.strerror(errno.EROFS): "make the file system writable, or set CITELOOM_DATA to a folder that is",
    os.strerror(errno.ENOSPC): "make room on that disk, then run again",
    os.strerror(errno.EDQUOT): "make room in this user's quota, then run again",
    os.strerror(errno.EFBIG): "raise the limit on a file's size (ulimit -f), then run again",
    os.strerror(errno.EMFILE): "raise the limit on open files (ulimit -n 65536), then run again",
    os.strerror(errno.ENFILE): "the whole machine has no open file left: close programs, then run again",
    os.strerror(errno.ENOMEM): "free some memory, or set CITELOOM_QDRANT_URL to a Qdrant server",
    os.strerror(errno.EIO): "the disk fails to read or write: see to it, then run again",
    _OWN_ROOM: "make room on that disk, then run again",
}


def make_whole(folder: Path, fill: Callable[[Path], None]) -> None:
    """Make a folder that is absent, by `fill`, under another name, and move it into place: a killed process leaves no
    half. Clears away what such a process began. Nothing where the folder is there by then. Raises PermanentFailure
    where the folder cannot be made, TransientFailure where another process is making it for too long."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_name(f"{folder.name}.lock"), timeout=60):
            for orphan in folder.parent.glob(f".{glob.escape(folder.name)}.*.new"):
                shutil.rmtree(orphan)
            if not folder.exists():
                insist_on_room(folder.parent, _ROOM_OF_A_NEW_ONE)
                staged = folder.with_name(f".{folder.name}.{os.getpid()}.new")
                staged.mkdir()
                fill(staged)
                move_into_place(staged, folder)
    except Timeout as error:
        raise TransientFailure(f"another process has been making {folder} for 60 s: run again") from error
    except OSError as error:
        raise PermanentFailure(cannot_be_used(folder, error)) from error


def open_shard(folder: Path, patience: float) -> Any:
    """The shard of a folder, held from now on by this process.

    patience: seconds to wait for a process that holds it. Raises TransientFailure where it still does after that,
    PermanentFailure where the folder cannot be opened.
    """
    import qdrant_edge

    end = time.monotonic() + patience
    while True:
        try:
            with explained(folder):
                shard = qdrant_edge.EdgeShard.load(str(folder))
        except PermanentFailure as error:
            if "WouldBlock" not in str(error.__cause__):
                raise
            if time.monotonic() >= end:
                raise TransientFailure(_held(folder)) from error
            time.sleep(0.1)
        else:
            _sign(folder)
            return shard


def close_shard(folder: Path, shard: Any) -> None:
    """Let go of a shard and of its folder. Raises PermanentFailure where the last of it could not be written."""
    with explained(folder):
        shard.close()
    with contextlib.suppress(OSError):
        _holder_file(folder).unlink(missing_ok=True)


@contextlib.contextmanager
def explained(folder: Path) -> Iterator[None]:
    """Turns what Edge raises into a PermanentFailure of this folder.

    Edge raises bare `Exception`s, and where its own code breaks, a `PanicException` that is none.
    """
    try:
        yield
    except CiteloomError:
        raise
    except BaseException as error:
        if isinstance(error, Exception) or type(error).__name__ == "PanicException":
            raise PermanentFailure(cannot_be_used(folder, error)) from error
        raise


def insist_on_room(folder: Path, needed: int = _ROOM) -> None:
    """Raises PermanentFailure where the disk of a folder has fewer than `needed` bytes left: what Edge takes to go
    on."""
    try:
        free = shutil.disk_usage(folder).free
    except FileNotFoundError:
        return  # a folder that is gone is told of by whoever opens it
    if free < needed:
        raise PermanentFailure(
            f"the disk of {folder} has {free >> 20} MB left, and Qdrant Edge needs {needed >> 20} MB to go on: make "
            f"room on it, then run again"
        )


def cannot_be_used(folder: Path, error: BaseException) -> str:
    """The message for a folder that fails: the operating system's reason and its way out, else to make it again."""
    for reason, way_out in _WAYS_OUT.items():
        if reason in str(error):
            return f"the index in {folder} cannot be used: {reason} ({error}): {way_out}"
    return (
        f"the index in {folder} cannot be used ({error}): delete the folder and run citeloom run --months all, which "
        f"loads it again from the tables"
    )


def _sign(folder: Path) -> None:
    """Say who holds the folder, for the message of the next process; without it the message is only vaguer."""
    holder = {"pid": os.getpid(), "program": Path(sys.argv[0]).name}
    with contextlib.suppress(OSError):
        write_whole(_holder_file(folder), json.dumps(holder).encode())


def _holder_file(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.holder.json")


def holder_of(folder: Path) -> tuple[int, str] | None:
    """Process id and program of who signed last as the folder's holder; None where nobody did, or has let go of it
    since. A killed process leaves its name."""
    try:
        holder = json.loads(_holder_file(folder).read_text())
        return int(holder["pid"]), str(holder["program"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _held(folder: Path) -> str:
    holder = holder_of(folder)
    who = f"process {holder[0]} ({holder[1]})" if holder else "another process"
    return (
        f"the index in {folder} is held by {who}, and Qdrant Edge serves one process at a time: wait for it to end, "
        f"or set CITELOOM_QDRANT_URL to a Qdrant server, which lifts the limit"
    )
