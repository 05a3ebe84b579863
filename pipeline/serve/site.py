"""What the requests of one server share: the workspace, the index, and an overview that is costly to compute."""

from __future__ import annotations

import threading
import time

from pipeline import tables
from pipeline.engine.stage import Workspace
from pipeline.serve.corpus_view import CorpusView, read_corpus
from pipeline.serve.index_access import IndexAccess
from pipeline.storage.data_root import DataRoot

# A month takes 0.1 s to look at.
_OVERVIEW_SECONDS = 60.0
# Each holds a thread until its last step.
MOST_QUESTIONS = 8


class Site:
    """A data root as a server shows it."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.index = IndexAccess(workspace)
        self.questions = threading.Semaphore(MOST_QUESTIONS)
        """Taken for a question while it is answered."""
        self._overview: CorpusView | None = None
        self._overview_time = 0.0
        self._lock = threading.Lock()

    @property
    def root(self) -> DataRoot:
        return self.workspace.root

    def overview(self) -> CorpusView:
        """All months, as they were at most a minute ago."""
        with self._lock:
            if self._overview is None or time.monotonic() - self._overview_time > _OVERVIEW_SECONDS:
                self._overview = read_corpus(self.workspace)
                self._overview_time = time.monotonic()
            return self._overview

    def months(self) -> list[str]:
        """The months that can be searched, oldest first."""
        return self.workspace.root.months(tables.PASSAGES)
