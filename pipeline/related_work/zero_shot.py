"""The zero-shot baseline of the ChatCite paper: p_g on the papers' texts, or on summaries of them made by p_s.

Small-context models summarise each paper first, large ones read everything at once; which it is follows from the
room in the context. Not here: key elements, examples (few-shot), plans (LitLLM).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.llm.client import Completion, LlmClient, spent
from pipeline.llm.context import count_tokens, fit
from pipeline.llm.loop import side_by_side
from pipeline.related_work.prompting import PROMPTS, Task, room
from pipeline.related_work.summary import Summary, make_summary

# A summary of fewer tokens says next to nothing; where |R| leaves less for each, what comes out is cut to fit.
_SHORTEST_SUMMARY = 32


@dataclass(frozen=True, slots=True)
class Baseline:
    """The baseline's parameters."""

    temperature: float
    draft_tokens: int
    context: int


async def zero_shot(client: LlmClient, task: Task, baseline: Baseline) -> Summary:
    """The section that p_g writes, in one call or after one call of p_s for the target and each reference."""
    left = room(baseline.context, baseline.draft_tokens, "generate", target="", references=_numbered(task, None))
    texts = (task.description, *task.contents)
    if sum(count_tokens(text) for text in texts) <= left:
        return await _generate(client, task, baseline, texts, [], {"steps": 1})
    longest = max(_SHORTEST_SUMMARY, min(baseline.draft_tokens, left // len(texts)))
    made = await side_by_side(_summarise(client, baseline, text, longest) for text in texts)
    shown = [fit(summary.text.strip(), left // len(texts)) for summary, _ in made]
    trace = {
        "steps": 2,
        "summaries": [summary.text for summary, _ in made],
        "contents_cut": [number for number, (_, cut) in enumerate(made) if cut],
        "summaries_cut": [number for number, each in enumerate(shown) if each.cut],
    }
    texts = tuple(each.text for each in shown)
    return await _generate(client, task, baseline, texts, [summary for summary, _ in made], trace)


async def _summarise(client: LlmClient, baseline: Baseline, text: str, longest: int) -> tuple[Completion, bool]:
    """p_s on one paper, cut to fit, and whether it was cut."""
    content = fit(text, room(baseline.context, longest, "summarize", content=""))
    messages = PROMPTS.messages("summarize", content=content.text)
    return await client.complete(messages, temperature=baseline.temperature, max_tokens=longest), content.cut


async def _generate(
    client: LlmClient,
    task: Task,
    baseline: Baseline,
    texts: Sequence[str],
    before: Sequence[Completion],
    trace: dict[str, Any],
) -> Summary:
    """p_g on the target's text and the references' texts."""
    messages = PROMPTS.messages("generate", target=texts[0], references=_numbered(task, texts[1:]))
    written = await client.complete(messages, temperature=baseline.temperature, max_tokens=baseline.draft_tokens)
    return make_summary(written.text, task.numbers, trace, spent([*before, written]))


def _numbered(task: Task, texts: Sequence[str] | None) -> str:
    """The references' texts under `[Reference i]` and title; None for the headings alone."""
    shown = texts if texts is not None else [""] * len(task.references)
    return "\n\n".join(
        f"[Reference {reference.number}] {reference.title}\n{text}"
        for reference, text in zip(task.references, shown, strict=True)
    )
