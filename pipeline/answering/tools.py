"""What a system answers a question with, and the log of its steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pipeline.llm.client import LlmClient, Spent
from pipeline.settings import Settings

if TYPE_CHECKING:
    from pipeline.answering.front_matter import FrontMatterTables
    from pipeline.answering.retrieval import PassageSearch

StepCallback = Callable[[Mapping[str, Any]], None]
"""Called after each step, so that a reader sees queries and passages before the answer."""


@dataclass(slots=True)
class StepLog:
    """The steps of an answer in order, as JSON values, and what they cost together."""

    on_step: StepCallback | None = None
    steps: list[dict[str, Any]] = field(default_factory=list)
    spent: Spent = field(default_factory=Spent)

    def add(self, stage: str, cost: Spent, **facts: Any) -> None:
        """Add a finished step."""
        step = {"stage": stage} | facts
        self.steps.append(step)
        self.spent += cost
        if self.on_step is not None:
            self.on_step(step)

    def append(self, *logs: StepLog) -> None:
        """Add the steps of other logs, which have called back already: concurrent steps have a log
        each, so that the order does not depend on which finished first.
        """
        for log in logs:
            self.steps += log.steps
            self.spent += log.spent


@dataclass(frozen=True, slots=True)
class Tools:
    """A model, a search and the tables. facts: None for a system that makes no claims from
    tables.
    """

    client: LlmClient | None
    retriever: PassageSearch
    settings: Settings
    facts: FrontMatterTables | None = None
    on_step: StepCallback | None = None

    @property
    def model(self) -> LlmClient:
        """The client of the model. Raises ValueError if there is none."""
        if self.client is None:
            raise ValueError("a system that calls a model needs a client")
        return self.client
