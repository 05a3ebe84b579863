"""Baselines of the ChatCite paper (section 5.1): zero-shot, few-shot, and its Table 2 "no
incremental".

The prompts p_s (summarize a paper) and p_g (generate the section) are as the paper prints them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pipeline.llm.client import LlmClient
from pipeline.llm.context import count_tokens, fit
from pipeline.llm.loop import side_by_side
from pipeline.llm.messages import Completion, spent
from pipeline.related_work.key_elements import KeyElements
from pipeline.related_work.prompt_files import (
    PROMPTS,
    AnswerLength,
    answer_length,
    draft_length,
    style_examples,
    unnumbered,
)
from pipeline.related_work.summary import Summary, make_summary
from pipeline.related_work.system import WRITING, RelatedWorkSystem
from pipeline.related_work.task import Task
from pipeline.settings import Settings

FEW_SHOT_EXAMPLES = 2
"""Style examples of few-shot and of ChatCite without incremental steps; the paper does not say how
many it has.
"""
# A summary of fewer tokens says next to nothing; where |R| leaves less for each, it is cut to fit.
_SHORTEST_SUMMARY = 32


@dataclass(frozen=True, slots=True)
class PaperTexts:
    """The target's text, then each reference's, as one prompt shows them: papers or summaries."""

    texts: tuple[str, ...]
    trace: dict[str, Any]
    completions: tuple[Completion, ...] = ()
    """Of p_s; none where the papers are read as they are."""


async def read_papers(client: LlmClient, task: Task, settings: Settings, room: int) -> PaperTexts:
    """All texts in `room` tokens: as they are, or summarized by one call of p_s each."""
    if sum(count_tokens(text) for text in task.texts) <= room:
        return PaperTexts(task.texts, {"steps": 1})
    return await summarize_papers(client, task, settings, room)


async def summarize_papers(
    client: LlmClient, task: Task, settings: Settings, room: int
) -> PaperTexts:
    """Summaries of the target and each reference, each cut to an equal share of `room` tokens."""
    share = max(room // len(task.texts), 1)
    limit = None
    if settings.draft_tokens:
        limit = max(_SHORTEST_SUMMARY, min(settings.draft_tokens, share))
    length = answer_length(limit, settings.llm_context)
    summaries = await side_by_side(summarize(client, settings, text, length) for text in task.texts)
    fitted = [fit(PROMPTS.unwrapped(summary.text), share) for summary, _ in summaries]
    trace = {
        "steps": 2,
        "summaries": [summary.text for summary, _ in summaries],
        "contents_cut": [number for number, (_, cut) in enumerate(summaries) if cut],
        "summaries_cut": [number for number, text in enumerate(fitted) if text.cut],
    }
    return PaperTexts(
        tuple(text.text for text in fitted), trace, tuple(summary for summary, _ in summaries)
    )


async def summarize(
    client: LlmClient, settings: Settings, text: str, length: AnswerLength
) -> tuple[Completion, bool]:
    """p_s on one paper, cut to fit; and whether the paper was cut."""
    content = fit(text, PROMPTS.room(settings.llm_context, length.room, "summarize", content=""))
    messages = PROMPTS.messages("summarize", content=content.text)
    completion = await client.complete(
        messages, temperature=settings.temperature, max_tokens=length.limit
    )
    return completion, content.cut


def prompt_texts(task: Task, papers: PaperTexts | None = None) -> dict[str, str]:
    """The values of a prompt: the target's text, and the references' under `[Reference i]` and
    title; None for the headings alone.
    """
    target, *bodies = papers.texts if papers else [""] * len(task.texts)
    references = "\n\n".join(
        f"[Reference {reference.number}] {unnumbered(reference.title)}\n{unnumbered(text)}"
        for reference, text in zip(task.references, bodies, strict=True)
    )
    return {"target": target, "references": references}


async def zero_shot(
    client: LlmClient,
    task: Task,
    elements: Sequence[KeyElements],
    settings: Settings,
    *,
    examples: int = 0,
) -> Summary:
    """The section that p_g writes, in one call or after one call of p_s for the target and each
    reference.

    examples: how many of the task's examples are shown, with the paper's words for few-shot.
    """
    return await _generate(client, task, settings, examples, read_papers)


async def without_incremental(
    client: LlmClient, task: Task, elements: Sequence[KeyElements], settings: Settings
) -> Summary:
    """Table 2's "no incremental" (section 5.3): summaries by p_s, then few-shot p_g with ChatCite's
    guidelines.

    With the guidelines, only key elements, incremental steps and votes differ from ChatCite.
    """
    read = summarize_papers
    return await _generate(client, task, settings, FEW_SHOT_EXAMPLES, read, guided=True)


async def _generate(
    client: LlmClient,
    task: Task,
    settings: Settings,
    examples: int,
    read: Callable[[LlmClient, Task, Settings, int], Awaitable[PaperTexts]],
    *,
    guided: bool = False,
) -> Summary:
    length = draft_length(settings, len(task.references))
    styles = style_examples(task, examples, settings)
    values: dict[str, Any] = {
        "examples": styles,
        "guided": guided,
        "basis": "summaries",
        "words": length.words,
    }
    heads = prompt_texts(task)
    room = PROMPTS.room(settings.llm_context, length.room, "generate", **heads, **values)
    papers = await read(client, task, settings, room)
    messages = PROMPTS.messages("generate", **prompt_texts(task, papers), **values)
    section = await client.complete(
        messages, temperature=settings.temperature, max_tokens=length.limit
    )
    trace = papers.trace | ({"examples": styles} if examples else {})
    cost = spent([*papers.completions, section])
    return make_summary(section.text, task.numbers, trace, cost, is_cut=section.truncated)


ZERO_SHOT = RelatedWorkSystem(
    name="zero_shot", write=zero_shot, settings=WRITING, prompts=("summarize", "generate")
)
FEW_SHOT = replace(
    ZERO_SHOT,
    name="few_shot",
    write=partial(zero_shot, examples=FEW_SHOT_EXAMPLES),
    examples=FEW_SHOT_EXAMPLES,
)
WITHOUT_INCREMENTAL = replace(FEW_SHOT, name="chatcite_no_incremental", write=without_incremental)
