"""Whether the process of a run lives, told by a lock file that it holds, and how a process ends with its parent.

The system lets go of a lock when its holder ends, however it ends, a crash of the host included; process numbers come
again after one.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

from filelock import FileLock, Timeout

_FOLDER = "running"
_PR_SET_PDEATHSIG = 1  # <linux/prctl.h>


class Sign(StrEnum):
    """What a run's lock file says of its process."""

    LIVES = "lives"
    GONE = "gone"
    NONE = "none"


@contextlib.contextmanager
def alive(home: Path, run_id: str) -> Iterator[None]:
    """Say that this process works on a run, for as long as it does; `home` is the folder of Dagster's instance."""
    file = _file(home, run_id)
    try:
        with FileLock(file):
            yield
    finally:
        file.unlink(missing_ok=True)


@contextlib.contextmanager
def examined(home: Path, run_id: str) -> Iterator[Sign]:
    """What is known of a run's process. Where it is gone, nobody else can take the run for dead within the block, and
    the file is removed after it."""
    file = _file(home, run_id)
    if not file.exists():
        yield Sign.NONE  # as for one whose file goes just now: its run has ended
        return
    lock = FileLock(file, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        yield Sign.LIVES
        return
    try:
        yield Sign.GONE
        file.unlink(missing_ok=True)
    finally:
        lock.release()


def sign(home: Path, run_id: str) -> Sign:
    """What is known of a run's process, for whoever only looks."""
    file = _file(home, run_id)
    if not file.exists():
        return Sign.NONE
    try:
        with FileLock(file, timeout=0):
            return Sign.GONE
    except Timeout:
        return Sign.LIVES


def shown(home: Path) -> set[str]:
    """The runs that have a lock file."""
    return {file.stem for file in (home / _FOLDER).glob("*.lock")}


def _file(home: Path, run_id: str) -> Path:
    folder = home / _FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{run_id}.lock"


def end_with_parent(parent: int) -> None:
    """Have the kernel kill this process (SIGKILL) as soon as `parent`, which started it, ends; at once if it has.

    On Linux alone, by prctl(2): the signal comes when the *thread* that started this process ends. Elsewhere without
    effect but for a parent that is gone already.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
