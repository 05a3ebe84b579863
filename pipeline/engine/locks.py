"""File locks that serialise work between processes of the command line and of Dagster.

The system releases a lock when its holder ends, also when it is killed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from filelock import FileLock, Timeout

from pipeline.engine import shutdown
from pipeline.engine.progress import Notice, publish
from pipeline.engine.stage import Workspace
from pipeline.errors import PermanentFailure, TransientFailure
from pipeline.settings import Settings
from pipeline.stage_names import plain_name

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
