"""State that the requests of one server share: the workspace, limits, and an overview."""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pipeline import tables
from pipeline.answering.rendering import StepRenderer
from pipeline.engine.stage import Workspace
from pipeline.errors import TransientFailure
from pipeline.report import publish as reports
from pipeline.serve.corpus_view import CorpusView, read_corpus
from pipeline.storage.data_root import DataRoot

if TYPE_CHECKING:
    from pipeline.answering.reply import Reply
    from pipeline.answering.session import StepObserver
    from pipeline.corpus.passage import Passage

# A month takes 0.1 s to look at.
_OVERVIEW_SECONDS = 60.0
# Each holds a thread until its last step.
MOST_QUESTIONS = 8


class Site:
    """A data root as a server shows it."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.searches = threading.Semaphore(os.cpu_count() or 1)
        """Taken for a search: more at once than there are cores delay one another."""
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

    def has_reports(self) -> bool:
        """Whether the page over all months is there, which every run of the stage writes."""
        return (self.root.path / reports.FOLDER / "index.html").is_file()

    def months(self) -> list[str]:
        """The months that can be searched, oldest first."""
        return self.workspace.root.months(tables.PASSAGES)


def asks_model(site: Site, system: str | None = None) -> bool:
    """Whether a system answers by a language model, which may cost money. Raises SettingError for
    an unknown system.
    """
    from pipeline.answering.systems import ANSWERING_WRITERS

    _, answering = ANSWERING_WRITERS.lookup(system, site.workspace.settings)
    return answering.calls_model


def ask(
    site: Site, question: str, system: str | None = None, observer: StepObserver | None = None
) -> Reply:
    """The answer to a question. system: None for the default of the settings.

    Raises SettingError for an unknown system or an empty question, TransientFailure if too many
    questions are being answered, IndexInUse if another process has the index, and as
    `Conversation.ask` does.
    """
    if not site.questions.acquire(blocking=False):
        raise TransientFailure(
            f"{MOST_QUESTIONS} questions are being answered: try again in a few seconds"
        )
    try:
        from pipeline.answering.session import open_conversation

        return open_conversation(site.workspace, system).ask(question, observer)
    finally:
        site.questions.release()


class LiveAnswer:
    """A question that is being answered: `progress` yields each step, then `reply` or `error` is
    set. steps: the lines of the steps so far.
    """

    def __init__(self, site: Site, question: str, system: str | None) -> None:
        self._site, self._question, self._system = site, question, system
        self._lines: queue.SimpleQueue[list[str] | None] = queue.SimpleQueue()
        self._render_step = StepRenderer()
        self.steps: list[list[str]] = []
        self.reply: Reply | None = None
        self.error: Exception | None = None

    def progress(self) -> Iterator[str]:
        """The first line of each step, until the answer is there."""
        threading.Thread(target=self._run, daemon=True).start()
        while (lines := self._lines.get()) is not None:
            self.steps.append(lines)
            yield lines[0]

    def _run(self) -> None:
        try:
            self.reply = ask(self._site, self._question, self._system, self._observe)
        except Exception as error:  # the page shows it: the response has begun
            self.error = error
        self._lines.put(None)

    def _observe(self, step: Mapping[str, Any], passages: Mapping[str, Passage]) -> None:
        self._lines.put(self._render_step(step, passages))
