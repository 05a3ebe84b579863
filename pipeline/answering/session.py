"""Questions to one system over a data root, as `citeloom ask` and `citeloom chat` ask them."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

from pipeline.answering.model_calls import Tools
from pipeline.answering.records import named_records
from pipeline.answering.retriever import (
    ALL_MONTHS,
    MonthSpan,
    PassageSearch,
    index_search,
    month_span,
)
from pipeline.answering.system import AnsweringSystem
from pipeline.answering.systems import ANSWERING_WRITERS
from pipeline.answering.user_question import MOST_TURNS, Turn, UserQuestion
from pipeline.corpus.nouns import Answer, Passage
from pipeline.engine.stage import Workspace
from pipeline.errors import SettingError
from pipeline.index.excerpts import with_excerpts
from pipeline.index.opening import live_index
from pipeline.llm.client import check_model, open_client
from pipeline.llm.loop import run
from pipeline.llm.messages import Usage
from pipeline.llm.models import settings_for

# Characters of a passage that is shown in place of an answer.
_EXCERPT = 900

StepObserver = Callable[[Mapping[str, Any], Mapping[str, Passage]], None]
"""Called after each step, with the passages retrieved so far by id: steps name passages by id."""


class Conversation:
    """Questions to one system, each with the turns before it; a failed question leaves no turn."""

    def __init__(
        self,
        workspace: Workspace,
        system: AnsweringSystem,
        model: str | None = None,
        span: MonthSpan = ALL_MONTHS,
    ) -> None:
        """model: of the system; None for the default model."""
        self._workspace, self._system, self._span = workspace, system, span
        self._model, self._settings = model, settings_for(workspace.settings, model, "--system")
        self._turns: deque[Turn] = deque(maxlen=MOST_TURNS)

    @property
    def system(self) -> str:
        """The name of the system that answers."""
        return self._system.name

    @property
    def model(self) -> str | None:
        """The model that is called; None for a system that calls none."""
        return self._settings.llm_model if self._system.calls_model else None

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The last turns, oldest first."""
        return tuple(self._turns)

    def reset(self) -> None:
        """Forget the turns."""
        self._turns.clear()

    def ask(self, question: str, observer: StepObserver | None = None) -> Answer:
        """The answer to a question; after the same turns the same answer, from the cache.

        Raises SettingError for a question that is empty or not valid Unicode, and as the client and
        the index do.
        """
        user_question = UserQuestion(question, self.turns)
        started = time.perf_counter()
        answer, usage = run(self._answer(user_question, observer))
        self._turns.append(Turn(question, answer.text))
        seconds = round(time.perf_counter() - started, 3)
        shown = answer.shown
        if answer.closest_passages():
            shown = tuple(tuple(with_excerpts(question, hop, _EXCERPT)) for hop in shown)
        return replace(
            answer,
            shown=shown,
            question=question,
            system=self.system,
            model=self.model,
            cost={**usage.measured(), "seconds": seconds},
        )

    async def _answer(
        self, question: UserQuestion, observer: StepObserver | None
    ) -> tuple[Answer, Usage]:
        workspace, span, system = self._workspace, self._span, self._system
        read_records = partial(named_records, workspace, span) if system.reads_records else None
        retriever = PassageSearch(index_search(workspace, span, system.search_by), read_records)
        on_step = None if observer is None else lambda step: observer(step, retriever.seen)
        async with (
            open_client(workspace, self._model) if system.calls_model else nullcontext()
        ) as client:
            answer = await system.answer(
                question, Tools(client, retriever, self._settings, on_step)
            )
        return answer, Usage() if client is None else client.usage


def open_conversation(
    workspace: Workspace, system: str | None = None, months: str = "all"
) -> Conversation:
    """A conversation with a system about the papers of some months.

    system: `arxivbot` or `arxivbot@model`; None for the default: `arxivbot_fused`, or `passages`
    where no endpoint is set.

    Raises SettingError for an unknown system, wrong months, or settings that the client refuses;
    MissingInput if the system needs an index and there is none. No model is called.
    """
    writer, answering_system = ANSWERING_WRITERS.lookup(system, workspace.settings)
    if answering_system.calls_model:
        check_model(workspace.settings, writer.model)
    if answering_system.retrieves:
        live_index(workspace)  # raises MissingInput before a model is paid
        span = month_span(workspace, months)
        return Conversation(workspace, answering_system, writer.model, span)
    if months.strip() != "all":
        raise SettingError(
            f"--months {months}: {answering_system.name} reads no paper, so that no month limits"
            " it: leave it out"
        )
    return Conversation(workspace, answering_system, writer.model)
