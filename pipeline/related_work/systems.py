"""The systems that write related work, by name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from pipeline.embedding.choice import make_embedder
from pipeline.engine.systems import System, chosen_writers, named_writer
from pipeline.llm.client import LlmClient
from pipeline.related_work import baselines, chatcite
from pipeline.related_work.baselines import FEW_SHOT_EXAMPLES, BaselineConfig
from pipeline.related_work.chatcite import BeamConfig
from pipeline.related_work.extractive import encoder_of, extractive, lead, lexrank
from pipeline.related_work.grounded import grounded
from pipeline.related_work.key_elements import KeyElements
from pipeline.related_work.prompt_files import answer_length
from pipeline.related_work.summary import Summary
from pipeline.related_work.task_model import Task
from pipeline.settings import Settings
from pipeline.tables.writers import Writer

Write = Callable[[LlmClient, Task, Sequence[KeyElements], Settings], Awaitable[Summary]]
WriteAll = Callable[[Sequence[Task], Settings], list[Summary]]


async def _call_no_model(client: LlmClient, task: Task, elements: Sequence[KeyElements], settings: Settings) -> Summary:
    raise ValueError("this system calls no model: use its write_all")


@dataclass(frozen=True, slots=True, kw_only=True)
class RelatedWorkSystem(System):
    """A system that writes related work."""

    write: Write = _call_no_model
    write_all: WriteAll | None = None
    """How a system that calls no model writes for several tasks at once; None for the others."""
    reads_elements: bool = False
    """Whether it is written from key elements; one that is not may be given none."""
    examples: Callable[[Settings], int] = lambda settings: 0
    """How many examples of style it shows."""
    reads_passages: bool = False
    """Whether it ties sentences to passages of the references."""
    reads_texts: bool = True
    """Whether it reads the texts of the references; one that does not knows them by key elements alone."""


def beam_config(settings: Settings) -> BeamConfig:
    """ChatCite's parameters."""
    context, draft_tokens = settings.llm_context, settings.draft_tokens or None
    return BeamConfig(
        samples=settings.chatcite_samples,
        votes=settings.chatcite_votes,
        beam=settings.chatcite_kept,
        temperature=settings.temperature,
        draft=answer_length(draft_tokens, context),
        vote=answer_length(vote_tokens(settings), context),
        context=context,
        vote_temperature=settings.vote_temperature,
        examples=settings.chatcite_examples,
    )


def vote_tokens(settings: Settings) -> int | None:
    """Longest vote, in tokens: a reason and a choice, half as long as a draft; None for no limit."""
    return max(16, settings.draft_tokens // 2) if settings.draft_tokens else None


def baseline_config(settings: Settings) -> BaselineConfig:
    """The baselines' parameters."""
    limit = settings.draft_tokens or None
    return BaselineConfig(settings.temperature, limit, settings.llm_context, settings.baseline_prompts)


_WRITING = ("llm_model", "llm_context", "temperature", "draft_tokens")
_BASELINE = (*_WRITING, "baseline_prompts")
_GUIDED = (*_WRITING, "chatcite_examples")
_SEARCH = (*_GUIDED, "chatcite_samples", "chatcite_votes", "chatcite_kept", "vote_temperature")
_PRINTED = ("summarize", "summarize_extended", "generate", "generate_extended")

SYSTEMS: Mapping[str, RelatedWorkSystem] = {
    system.name: system
    for system in (
        RelatedWorkSystem(
            name="chatcite",
            write=lambda client, task, elements, settings: chatcite.chatcite(
                client, task, elements, beam_config(settings)
            ),
            settings=_SEARCH,
            prompts=("draft", "vote"),
            reads_elements=True,
            examples=lambda settings: settings.chatcite_examples,
            reads_texts=False,
        ),
        RelatedWorkSystem(
            name="chatcite_no_elements",
            write=lambda client, task, elements, settings: chatcite.without_elements(
                client, task, beam_config(settings), baseline_config(settings)
            ),
            settings=(*_SEARCH, "baseline_prompts"),
            prompts=("summarize", "summarize_extended", "draft", "vote"),
            examples=lambda settings: settings.chatcite_examples,
        ),
        RelatedWorkSystem(
            name="chatcite_no_incremental",
            write=lambda client, task, elements, settings: baselines.without_incremental(
                client, task, baseline_config(settings)
            ),
            settings=_BASELINE,
            prompts=_PRINTED,
            examples=lambda settings: FEW_SHOT_EXAMPLES,
        ),
        RelatedWorkSystem(
            name="chatcite_no_reflection",
            write=lambda client, task, elements, settings: chatcite.without_reflection(
                client, task, elements, beam_config(settings)
            ),
            settings=_GUIDED,
            prompts=("draft",),
            reads_elements=True,
            examples=lambda settings: settings.chatcite_examples,
            reads_texts=False,
        ),
        RelatedWorkSystem(
            name="chatcite_grounded",
            write=lambda client, task, elements, settings: grounded(
                client, task, elements, beam_config(settings), settings.element_tokens or None
            ),
            settings=(*_SEARCH, "element_tokens"),
            prompts=("evidence", "group", "tied", "repair", "vote", "support", "revise"),
            reads_elements=True,
            examples=lambda settings: settings.chatcite_examples,
            reads_passages=True,
        ),
        RelatedWorkSystem(
            name="zero_shot",
            write=lambda client, task, elements, settings: baselines.zero_shot(client, task, baseline_config(settings)),
            settings=_BASELINE,
            prompts=_PRINTED,
        ),
        RelatedWorkSystem(
            name="few_shot",
            write=lambda client, task, elements, settings: baselines.zero_shot(
                client, task, baseline_config(settings), FEW_SHOT_EXAMPLES
            ),
            settings=_BASELINE,
            prompts=_PRINTED,
            examples=lambda settings: FEW_SHOT_EXAMPLES,
        ),
        RelatedWorkSystem(
            name="litllm",
            write=lambda client, task, elements, settings: baselines.litllm(client, task, baseline_config(settings)),
            settings=_BASELINE,
            prompts=("summarize", "summarize_extended", "plan", "planned"),
        ),
        RelatedWorkSystem(
            name="extractive",
            version=2,
            settings=("embedder", "embedder_path"),
            prompts=(),
            calls_model=False,
            write_all=lambda tasks, settings: extractive(tasks, encoder_of(make_embedder(settings))),
            reads_passages=True,
        ),
        RelatedWorkSystem(
            name="lead",
            version=2,
            settings=(),
            prompts=(),
            calls_model=False,
            write_all=lambda tasks, settings: [lead(task) for task in tasks],
            reads_passages=True,
        ),
        RelatedWorkSystem(
            name="lexrank",
            version=2,
            settings=(),
            prompts=(),
            calls_model=False,
            write_all=lambda tasks, settings: [lexrank(task) for task in tasks],
            reads_passages=True,
        ),
    )
}


def default_system(settings: Settings) -> str:
    """The system that writes where none is named: one that calls no model where no endpoint is set."""
    return "extractive" if settings.embedded_llm else "chatcite"


def related_work_writers(settings: Settings) -> list[tuple[Writer, RelatedWorkSystem]]:
    """The writers that CITELOOM_SYSTEMS names, with their systems. Raises SettingError as `chosen_writers` does."""
    return chosen_writers(SYSTEMS, settings.systems, settings, "CITELOOM_SYSTEMS")


def related_work_writer(name: str, settings: Settings) -> tuple[Writer, RelatedWorkSystem]:
    """The writer of the option --system. Raises SettingError as `named_writer` does."""
    return named_writer(SYSTEMS, name, settings)
