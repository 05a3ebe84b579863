"""The course of an answer, step by step: kept for its trace, and told at once to whoever watches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipeline.answering.prompting import NOTHING
from pipeline.llm.client import Spent

Tell = Callable[[Mapping[str, Any]], None]
"""Told of each step once it is done, so that a reader sees queries and passages before the answer is there."""


@dataclass(slots=True)
class Steps:
    """Steps in order, JSON-able, and what they cost together."""

    tell: Tell | None = None
    done: list[dict[str, Any]] = field(default_factory=list)
    spent: Spent = NOTHING

    def add(self, stage: str, cost: Spent, **facts: Any) -> None:
        """A step that is done, with its facts."""
        step = {"stage": stage} | facts
        self.done.append(step)
        self.spent += cost
        if self.tell is not None:
            self.tell(step)

    def and_then(self, *later: Steps) -> Steps:
        """These steps with others behind them, in the order given, whichever were done first; tells nobody."""
        every: Sequence[Steps] = (self, *later)
        return Steps(
            self.tell, [step for each in every for step in each.done], sum((each.spent for each in every), NOTHING)
        )
