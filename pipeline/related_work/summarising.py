"""Papers' texts as the baselines read them: whole where they fit, else summaries by p_s (ChatCite, section 5.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.llm.client import Completion, LlmClient, Spent, spent
from pipeline.llm.context import count_tokens, fit
from pipeline.llm.loop import side_by_side
from pipeline.related_work.prompting import PROMPTS, Task, longest_draft, room, unnumbered, words_of

# A summary of fewer tokens says next to nothing; where |R| leaves less for each, what comes out is cut to fit.
_SHORTEST_SUMMARY = 32


@dataclass(frozen=True, slots=True)
class Baseline:
    """The baselines' parameters, in tokens but for the temperature."""

    temperature: float
    draft_tokens: int
    context: int

    def longest(self, task: Task) -> int:
        """Tokens of the longest section on a task's references."""
        return longest_draft(self.draft_tokens, len(task.references), self.context)


@dataclass(frozen=True, slots=True)
class Read:
    """The target's text and then each reference's, as a prompt may show them together."""

    texts: tuple[str, ...]
    trace: dict[str, Any]
    spent: Spent

    def target(self) -> str:
        return self.texts[0]

    def references(self, task: Task) -> str:
        return numbered(task, self.texts[1:])


async def read_all(client: LlmClient, task: Task, baseline: Baseline, left: int) -> Read:
    """All texts in `left` tokens: as they are, in one step, or in two by one call of p_s for each of them."""
    if fits(task, left):
        return Read((task.description, *task.contents), {"steps": 1}, Spent())
    return await _summaries(client, task, baseline, left)


def fits(task: Task, left: int) -> bool:
    """Whether the target's and all references' texts have at most so many tokens together."""
    return sum(count_tokens(text) for text in (task.description, *task.contents)) <= left


async def _summaries(client: LlmClient, task: Task, baseline: Baseline, left: int) -> Read:
    texts = (task.description, *task.contents)
    each_has = left // len(texts)
    longest = max(_SHORTEST_SUMMARY, min(baseline.draft_tokens, each_has))
    made = await side_by_side(summarise(client, baseline, text, longest) for text in texts)
    shown = [fit(PROMPTS.unwrapped(summary.text), each_has) for summary, _ in made]
    trace = {
        "steps": 2,
        "summaries": [summary.text for summary, _ in made],
        "contents_cut": [number for number, (_, cut) in enumerate(made) if cut],
        "summaries_cut": [number for number, each in enumerate(shown) if each.cut],
    }
    return Read(tuple(each.text for each in shown), trace, spent([summary for summary, _ in made]))


async def summarise(client: LlmClient, baseline: Baseline, text: str, longest: int) -> tuple[Completion, bool]:
    """p_s on one paper, cut to fit, in `longest` tokens at most; and whether the paper was cut."""
    words = words_of(longest)
    content = fit(text, room(baseline.context, longest, "summarize", content="", words=words))
    messages = PROMPTS.messages("summarize", content=content.text, words=words)
    return await client.complete(messages, temperature=baseline.temperature, max_tokens=longest), content.cut


def numbered(task: Task, texts: Sequence[str] | None) -> str:
    """The references' texts under `[Reference i]` and title; None for the headings alone."""
    shown = texts if texts is not None else [""] * len(task.references)
    return "\n\n".join(
        f"[Reference {reference.number}] {unnumbered(reference.title)}\n{unnumbered(text)}"
        for reference, text in zip(task.references, shown, strict=True)
    )
