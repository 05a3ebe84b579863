"""How fast arXiv may be asked, by its API and OAI-PMH alike, over all processes of the machine."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from pipeline.engine import progress
from pipeline.errors import PermanentFailure
from pipeline.storage.writing import write_whole

# "Make no more than one request every three seconds, and limit requests to a single connection at a time", for all
# machines under one's control (https://info.arxiv.org/help/api/tou.html).
GAP_SECONDS = 3.0
LONGEST_WAIT_SECONDS = 600.0
WAIT_WORTH_TELLING_SECONDS = 20.0


def machine_folder() -> Path:
    """The folder of the user's cache that every run of citeloom on this machine shares."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "citeloom"


class Pace:
    """Keeps requests apart over all processes that share its folder.

    A lock is held while a request is in flight, so there is one connection; a file says when the next may start. `gap`
    is in seconds, from the end of one request to the start of the next; another one than arXiv's is for tests.
    """

    def __init__(self, folder: Path | None = None, *, gap: float = GAP_SECONDS) -> None:
        self._folder, self._gap = folder or machine_folder(), gap

    @property
    def gap(self) -> float:
        """Seconds from the end of one request to the start of the next."""
        return self._gap

    def slower(self, gap: float) -> Pace:
        """The same turns with a gap of at least so many seconds, where one who is asked wants more rest."""
        return Pace(self._folder, gap=max(self._gap, gap))

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Waits for this process's turn, and holds it. Raises PermanentFailure where the folder cannot be written."""
        with self._lock():
            self._wait(self._next() - time.time())
            self.postpone(self._gap)  # before the request: a process killed in its middle has made it all the same
            try:
                yield
            finally:
                self.postpone(self._gap)

    def _wait(self, seconds: float) -> None:
        if seconds > WAIT_WORTH_TELLING_SECONDS:
            progress.noted(f"arXiv asked for rest: waiting {progress.duration(seconds)} before the next request")
        time.sleep(max(seconds, 0.0))

    def postpone(self, seconds: float) -> None:
        """Let no process start a request for so long; only for the one whose turn it is."""
        until = max(self._next(), time.time() + min(seconds, LONGEST_WAIT_SECONDS))
        try:
            write_whole(self._file, repr(until).encode())
        except OSError as error:
            raise self._unwritable(error) from error

    def rest(self, now: float) -> float:
        """Seconds, from `now` in those since 1970, before which no request may start; waits for nobody."""
        return max(self._next() - now, 0.0)

    @property
    def _file(self) -> Path:
        return self._folder / "arxiv-api-next-request"

    def _next(self) -> float:
        try:
            until = float(self._file.read_text())
        except (FileNotFoundError, ValueError):
            return 0.0
        return min(until, time.time() + LONGEST_WAIT_SECONDS)  # the clock may have been set back meanwhile

    def _lock(self) -> FileLock:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            (self._folder / "arxiv-api.lock").touch()
        except OSError as error:
            raise self._unwritable(error) from error
        return FileLock(self._folder / "arxiv-api.lock")

    def _unwritable(self, error: OSError) -> PermanentFailure:
        return PermanentFailure(
            f"{self._folder}, where runs of citeloom agree on their pace at arXiv, cannot be written ({error}): "
            "set XDG_CACHE_HOME to a folder that can"
        )


@dataclass(frozen=True, slots=True)
class Patience:
    """How often a request is tried, the first back-off in seconds (each next one is twice as long), and for how many
    seconds a silent server is waited for."""

    tries: int = 5
    first_back_off: float = 10.0
    silence: float = 60.0

    def back_off(self, tries_made: int) -> float:
        """Seconds to rest after so many tries."""
        return min(self.first_back_off * 2.0 ** (tries_made - 1), LONGEST_WAIT_SECONDS)
