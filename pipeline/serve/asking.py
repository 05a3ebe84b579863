"""Questions to the corpus: an answer at once, or with its steps as they come."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pipeline.errors import SettingError, TransientFailure
from pipeline.serve.search_results import LONGEST_QUERY
from pipeline.serve.site import MOST_QUESTIONS, Site

if TYPE_CHECKING:
    from pipeline.answering.retrieval import RetrievedPassage
    from pipeline.answering.session import Reply, StepObserver


def ask(site: Site, question: str, system: str | None = None, observer: StepObserver | None = None) -> Reply:
    """The answer to a question. system: None for the default of the settings.

    Raises SettingError for an unknown system or an empty question, TransientFailure if too many questions are being
    answered, IndexInUse if another process has the index, and as `Conversation.ask` does.
    """
    if len(question) > LONGEST_QUERY:
        raise SettingError(f"the question has {len(question):,} characters: give at most {LONGEST_QUERY:,}")
    if not site.questions.acquire(blocking=False):
        raise TransientFailure(f"{MOST_QUESTIONS} questions are being answered: try again in a few seconds")
    try:
        from pipeline.answering.session import open_conversation

        with site.index.searching():
            return open_conversation(site.workspace, system).ask(question, observer)
    finally:
        site.questions.release()


class LiveAnswer:
    """A question that is being answered. `steps` yields lines as they come; then `reply` or `error` is set."""

    def __init__(self, site: Site, question: str, system: str | None) -> None:
        self._site, self._question, self._system = site, question, system
        self._lines: queue.SimpleQueue[list[str] | None] = queue.SimpleQueue()
        self.reply: Reply | None = None
        self.error: Exception | None = None

    def steps(self) -> Iterator[list[str]]:
        """The lines of each step, until the answer is there."""
        threading.Thread(target=self._run, daemon=True).start()
        while (lines := self._lines.get()) is not None:
            yield lines

    def _run(self) -> None:
        try:
            self.reply = ask(self._site, self._question, self._system, self._observe)
        except Exception as error:  # the page shows it: the response has begun
            self.error = error
        self._lines.put(None)

    def _observe(self, step: Mapping[str, Any], passages: Mapping[str, RetrievedPassage]) -> None:
        from pipeline.answering.rendering import step_lines

        self._lines.put(step_lines(step, passages))
