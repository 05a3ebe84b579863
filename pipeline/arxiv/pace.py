"""The rate limit of arXiv, kept by a lock and a file that all processes of this machine share."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from filelock import FileLock

from pipeline.engine import progress
from pipeline.errors import PermanentFailure
from pipeline.storage.writing import write_whole

# "Make no more than one request every three seconds, and limit requests to a single connection at a time", for all
# machines under one's control (https://info.arxiv.org/help/api/tou.html).
GAP_SECONDS = 3.0
LONGEST_WAIT_SECONDS = 600.0
NOTED_WAIT_SECONDS = 20.0


def machine_folder() -> Path:
    """The folder of the user's cache that all runs of citeloom on this machine share."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "citeloom"


@dataclass(frozen=True, slots=True)
class Pace:
    """Spaces requests over all processes that share a folder: one connection at a time, and a pause after a request.

    A process holds the lock while it talks to arXiv; a file holds the time at which the next request may start.
    """

    folder: Path = field(default_factory=machine_folder)
    gap: float = GAP_SECONDS
    """The pause after a request, in seconds."""
    tries: int = 5
    """How often a request is sent."""
    first_back_off: float = 10.0
    """Seconds before the second try; they double with each."""
    silence: float = 60.0
    """Read time-out in seconds."""

    @property
    def _file(self) -> Path:
        return self.folder / "arxiv-api-next-request"

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Hold the only connection. Raises PermanentFailure where the folder cannot be written."""
        with self._lock():
            try:
                yield
            finally:
                self.postpone(self.gap)

    def wait(self) -> None:
        """Sleep until the next request may start. Call it in a `turn`, before each request."""
        seconds = self.rest()
        if seconds > NOTED_WAIT_SECONDS:
            progress.noted(f"arXiv asked for a pause: waiting {progress.duration(seconds)} before the next request")
        time.sleep(seconds)
        self.postpone(self.gap)  # before the request, since a process killed during the request has sent it

    def postpone(self, seconds: float) -> None:
        """Let no process start a request for so long; the time never moves back. Call it in a `turn`."""
        until = max(self._next(), time.time() + min(seconds, LONGEST_WAIT_SECONDS))
        try:
            write_whole(self._file, repr(until).encode())
        except OSError as error:
            raise self._unwritable(error) from error

    def rest(self) -> float:
        """Seconds until the next request may start."""
        return max(self._next() - time.time(), 0.0)

    def _next(self) -> float:
        try:
            until = float(self._file.read_text())
        except (FileNotFoundError, ValueError):
            return 0.0
        return min(until, time.time() + LONGEST_WAIT_SECONDS)  # the clock may have been set back meanwhile

    def _lock(self) -> FileLock:
        file = self.folder / "arxiv-api.lock"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            file.touch()
        except OSError as error:
            raise self._unwritable(error) from error
        return FileLock(file)

    def _unwritable(self, error: OSError) -> PermanentFailure:
        return PermanentFailure(
            f"cannot write {self.folder}, where runs of citeloom share the rate limit of arXiv ({error}): "
            "set XDG_CACHE_HOME to a writable folder"
        )
