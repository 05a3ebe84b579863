"""The systems that write related work, by name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from pipeline.engine.systems import System, Writers, in_order
from pipeline.llm.client import LlmClient
from pipeline.related_work import baselines, chatcite
from pipeline.related_work.baselines import FEW_SHOT_EXAMPLES
from pipeline.related_work.key_elements import KeyElements
from pipeline.related_work.lead_lexrank import lead, lexrank
from pipeline.related_work.litllm import litllm, litllm_plan
from pipeline.related_work.summary import Summary
from pipeline.related_work.task import Task
from pipeline.settings import Settings
from pipeline.system_names import FORMER_RELATED_WORK_SYSTEMS, RELATED_WORK_SYSTEMS

Write = Callable[[LlmClient, Task, Sequence[KeyElements], Settings], Awaitable[Summary]]
WriteAll = Callable[[Sequence[Task], Settings], list[Summary]]


async def _call_no_model(
    client: LlmClient, task: Task, elements: Sequence[KeyElements], settings: Settings
) -> Summary:
    raise ValueError("this system calls no model: use its write_all")


@dataclass(frozen=True, slots=True, kw_only=True)
class RelatedWorkSystem(System):
    """A system that writes related work."""

    write: Write = _call_no_model
    answers_of: str = ""
    """Earlier name, under which the cache has its answers; empty for its own name."""
    write_all: WriteAll | None = None
    """How a system that calls no model writes for several tasks at once; None for the others."""
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


_WRITING = ("llm_model", "llm_context", "temperature", "draft_tokens")
_GUIDED = (*_WRITING, "chatcite_examples")
_SEARCH = (*_GUIDED, "chatcite_samples", "chatcite_votes", "chatcite_kept", "vote_temperature")
_PRINTED = ("summarize", "generate")

SYSTEMS = in_order(
    RELATED_WORK_SYSTEMS,
    (
        RelatedWorkSystem(
            name="chatcite",
            write=chatcite.chatcite,
            settings=_SEARCH,
            prompts=("draft", "vote"),
            reads_elements=True,
            examples="chatcite_examples",
            reads_texts=False,
        ),
        RelatedWorkSystem(
            name="chatcite_no_elements",
            write=chatcite.without_elements,
            settings=_SEARCH,
            prompts=("summarize", "draft", "vote"),
            examples="chatcite_examples",
        ),
        RelatedWorkSystem(
            name="chatcite_no_incremental",
            write=baselines.without_incremental,
            settings=_WRITING,
            prompts=_PRINTED,
            examples=FEW_SHOT_EXAMPLES,
        ),
        RelatedWorkSystem(
            name="chatcite_no_reflection",
            write=chatcite.without_reflection,
            settings=_GUIDED,
            prompts=("draft",),
            reads_elements=True,
            examples="chatcite_examples",
            reads_texts=False,
        ),
        RelatedWorkSystem(
            name="zero_shot",
            write=baselines.zero_shot,
            settings=_WRITING,
            prompts=_PRINTED,
        ),
        RelatedWorkSystem(
            name="few_shot",
            write=partial(baselines.zero_shot, examples=FEW_SHOT_EXAMPLES),
            settings=_WRITING,
            prompts=_PRINTED,
            examples=FEW_SHOT_EXAMPLES,
        ),
        RelatedWorkSystem(
            name="litllm",
            version=2,
            write=litllm,
            settings=_WRITING,
            prompts=("summarize", "litllm"),
        ),
        RelatedWorkSystem(
            name="litllm_plan",
            answers_of="litllm",
            write=litllm_plan,
            settings=_WRITING,
            prompts=("summarize", "plan", "planned"),
        ),
        RelatedWorkSystem(
            name="lead",
            version=4,
            calls_model=False,
            write_all=lambda tasks, settings: [lead(task) for task in tasks],
            reads_passages=True,
        ),
        RelatedWorkSystem(
            name="lexrank",
            version=4,
            calls_model=False,
            write_all=lambda tasks, settings: [lexrank(task) for task in tasks],
            reads_passages=True,
        ),
    ),
)

NOTES = "notes"
"""The annotated list, which `relate` writes in place of a section where no model is to write."""
RELATED_WORK_WRITERS = Writers(
    SYSTEMS,
    "systems",
    "chatcite",
    without_model=NOTES,
    former=FORMER_RELATED_WORK_SYSTEMS,
)
