"""The declaration of a system that writes related work, which stands beside its function."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from pipeline.engine.systems import System
from pipeline.llm.client import LlmClient
from pipeline.related_work.key_elements import KeyElements
from pipeline.related_work.summary import Summary
from pipeline.related_work.task import Task
from pipeline.settings import Settings

WRITING = ("llm_model", "llm_context", "temperature", "draft_tokens")
"""The settings of every system that calls a model."""


async def _call_no_model(
    client: LlmClient, task: Task, elements: Sequence[KeyElements], settings: Settings
) -> Summary:
    raise ValueError("this system calls no model: use its quote")


@dataclass(frozen=True, slots=True, kw_only=True)
class RelatedWorkSystem(System):
    """A system that writes related work."""

    write: Callable[[LlmClient, Task, Sequence[KeyElements], Settings], Awaitable[Summary]] = (
        _call_no_model
    )
    quote: Callable[[Task, Settings], Summary] | None = None
    """How a system that calls no model writes; None for the others."""
    answers_of: str = ""
    """Earlier name, under which the cache has its answers; empty for its own name."""
    reads_elements: bool = False
    """Whether it writes from key elements; the others need none."""
    examples: int | str = 0
    """Number of style examples that it shows, or the name of the setting for it."""
    reads_passages: bool = False
    """Whether it ties sentences to passages of the references."""
    reads_texts: bool = True
    """Whether it reads the texts of the references, and not their key elements alone."""

    def count_examples(self, settings: Settings) -> int:
        """Number of style examples that it shows."""
        if isinstance(self.examples, int):
            return self.examples
        return int(getattr(settings, self.examples))
