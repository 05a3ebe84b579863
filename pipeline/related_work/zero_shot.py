"""The zero-shot and few-shot baselines of the ChatCite paper: p_g on the papers' texts, or on summaries made by p_s.

Few-shot is the same with examples of style before it.
"""

from __future__ import annotations

from pipeline.llm.client import LlmClient, spent
from pipeline.related_work.prompting import PROMPTS, Task, room, styles, words_of
from pipeline.related_work.summarising import Baseline, fits, numbered, read_all
from pipeline.related_work.summary import Summary, make_summary


async def zero_shot(client: LlmClient, task: Task, baseline: Baseline, examples: int = 0) -> Summary:
    """The section that p_g writes, in one call or after one call of p_s for the target and each reference.

    examples: how many of the task's examples are shown, with the paper's words for few-shot.
    """
    shown = styles(task, examples, baseline.context)
    read = await read_all(client, task, baseline, _room(task, baseline, examples))
    values = {"target": read.target(), "references": read.references(task)}
    longest = baseline.longest(task)
    messages = PROMPTS.messages("generate", **values, examples=shown, words=words_of(longest))
    written = await client.complete(messages, temperature=baseline.temperature, max_tokens=longest)
    trace = read.trace | {"truncated": written.truncated} | ({"examples": shown} if examples else {})
    return make_summary(written.text, task.numbers, trace, read.spent + spent([written]))


def planned_calls(references: int, *, whole: bool = False) -> int:
    """One call where the texts fit whole; else one of p_s for the target and each reference before it."""
    return 1 if whole else references + 2


def reads_whole(task: Task, baseline: Baseline, examples: int = 0) -> bool:
    """Whether the texts of a task fit as they are, so that one call does."""
    return fits(task, _room(task, baseline, examples))


def _room(task: Task, baseline: Baseline, examples: int) -> int:
    shown, headings = styles(task, examples, baseline.context), numbered(task, None)
    longest = baseline.longest(task)
    frame = {"references": headings, "examples": shown, "words": words_of(longest)}
    return room(baseline.context, longest, "generate", target="", **frame)
