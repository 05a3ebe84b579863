"""Access to the index for many requests of one process, which releases the embedded index when nobody searches."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from pipeline.engine.locks import pool_in_use
from pipeline.engine.stage import Workspace
from pipeline.errors import TransientFailure
from pipeline.index.opening import close_indexes, live_index

# Seconds without a search after which another process may open the embedded index. A run waits ten for it.
_IDLE_SECONDS = 2.0
# A look at the lock of the runs takes half a millisecond.
SECONDS_BETWEEN_LOOKS = 0.2
_POOL = "qdrant"


class IndexInUse(TransientFailure):
    """Another process has the embedded index, most often a run that loads it."""


class IndexAccess:
    """The index of a workspace, opened by the first search and released after a pause.

    A Qdrant server serves many processes, so that its connection stays open.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._is_embedded = workspace.settings.qdrant_url is None
        self._lock = threading.Lock()
        self.turn = threading.Semaphore(os.cpu_count() or 1)
        """Taken for a search: more at once than there are cores delay one another."""
        self._searches = 0
        self._last_search = 0.0
        self._is_open = False
        self._run_has_index = False
        self._last_look = -math.inf

    @contextmanager
    def searching(self) -> Iterator[None]:
        """Keep the index open for one search. Raises IndexInUse if another process has it."""
        if not self._is_embedded:
            yield
            return
        with self._lock:
            self._open()
            self._searches += 1
        try:
            yield
        finally:
            with self._lock:
                self._searches -= 1
                self._last_search = time.monotonic()

    def _open(self) -> None:
        """Open the index unless a run waits for it. Raises IndexInUse, MissingInput if nothing is indexed."""
        if time.monotonic() - self._last_look >= SECONDS_BETWEEN_LOOKS:
            self._run_has_index = pool_in_use(self._workspace, _POOL)
            self._last_look = time.monotonic()
        if self._run_has_index:
            self._close_if_unused()
            raise IndexInUse("the index is being loaded: try again in a few seconds")
        if self._is_open:
            return
        try:
            live_index(self._workspace).count(wait=False)
        except TransientFailure as error:
            raise IndexInUse(str(error)) from error
        self._is_open = True

    def release_if_idle(self, idle_seconds: float = _IDLE_SECONDS) -> None:
        """Close the embedded index if nobody has searched for a while."""
        with self._lock:
            if time.monotonic() - self._last_search >= idle_seconds:
                self._close_if_unused()

    @contextmanager
    def released_when_idle(self) -> Iterator[None]:
        """Look every half second whether to release the index, and release it at the end of the block."""
        ended = threading.Event()

        def watch() -> None:
            while not ended.wait(0.5):
                self.release_if_idle()

        threading.Thread(target=watch, daemon=True).start()
        try:
            yield
        finally:
            ended.set()
            self.release_if_idle(0)

    def _close_if_unused(self) -> None:
        if self._is_open and self._searches == 0:
            close_indexes()
            self._is_open = False
