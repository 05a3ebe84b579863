"""ChatCite with one of its three parts taken out (section 5.3 of arXiv 2403.02574). Never more than one part.

The paper says little of how; docs/methods/related-work.md names what it says, what it leaves open and what is ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pipeline.llm.client import LlmClient, spent
from pipeline.llm.context import count_tokens, fit
from pipeline.llm.loop import side_by_side
from pipeline.related_work.chatcite import (
    ELEMENTS,
    Draft,
    Known,
    Round,
    Search,
    incremental,
    known_by_elements,
    planned_calls,
    reference_lines,
)
from pipeline.related_work.key_elements import KeyElements
from pipeline.related_work.prompting import PROMPTS, Reference, Task, room
from pipeline.related_work.summarising import Baseline, summarise
from pipeline.related_work.summary import Summary, make_summary
from pipeline.related_work.voting import best_choices, vote

_GIST_CHARS = 240  # of a summary, for the evaluator's one line on a reference; a key element is about as long


async def without_elements(client: LlmClient, task: Task, search: Search) -> Summary:
    """The search over summaries that the baseline's prompt p_s makes, in place of the seven answers."""
    baseline = Baseline(search.temperature, search.draft_tokens, search.context)
    texts = (task.description, *task.contents)
    made = await side_by_side(summarise(client, baseline, text, search.draft_tokens) for text in texts)
    titles = (task.title, *(reference.title for reference in task.references))
    known = [_known(title, summary.text) for title, (summary, _) in zip(titles, made, strict=True)]
    cost = spent([summary for summary, _ in made])
    found = await incremental(client, task, known, search, basis="summary", before=cost)
    kept = {
        "summaries": [summary.text for summary, _ in made],
        "contents_cut": [number for number, (_, cut) in enumerate(made) if cut],
    }
    return replace(found, trace=dict(found.trace) | kept)


def planned_without_elements(references: int, search: Search) -> int:
    """One call of p_s for the target and each reference, and those of the search."""
    return references + 1 + planned_calls(references, search)


def _known(title: str, summary: str) -> Known:
    folded = " ".join(summary.split())
    return Known.of(f"Title: {title}\n{summary.strip()}", folded[:_GIST_CHARS])


async def without_incremental(
    client: LlmClient, task: Task, elements: Sequence[KeyElements], search: Search
) -> Summary:
    """Drafts on all references at once, under the same guidelines, and votes over them: one round, no steps."""
    search = search.sized(len(task.references))
    known = known_by_elements(task, elements)
    frame = search.frame(task, ELEMENTS)
    left = room(search.context, search.draft_tokens, "at_once", target="", references=_under(task, None), **frame)
    # The target has what it needs, up to its share of the room among |R|+1 papers; the references share the rest.
    about = fit(known[0].text, left // len(known))
    each_has = (left - count_tokens(about.text)) // max(len(task.references), 1)
    shown = [fit(each.text, each_has) for each in known[1:]]
    references = _under(task, [each.text for each in shown])
    messages = PROMPTS.messages("at_once", target=about.text, references=references, **frame)
    written = await client.samples(
        messages, search.samples, temperature=search.temperature, max_tokens=search.draft_tokens
    )
    drafts = tuple(Draft(PROMPTS.unwrapped(each.text), 0, each.truncated) for each in written)
    lines = reference_lines(task.references, known[1:])
    polled = await vote(client, search.evaluator(), known[0].text, lines, [draft.text for draft in drafts], ELEMENTS)
    cut = polled.cut or about.cut or any(each.cut for each in shown)
    kept = best_choices(polled.tallies, search.kept)
    cost = spent(written) + spent(polled.cast)
    done = Round(len(task.references), drafts, polled.votes, polled.tallies, kept, cut, cost)
    trace = search.shown(task) | {"at_once": True, "rounds": [done.trace()]}
    return make_summary(done.survivors()[0].text, task.numbers, trace, cost)


def planned_without_incremental(references: int, search: Search) -> int:
    """n_s drafts and n_v votes, however many references there are."""
    return search.samples + search.votes


def _under(task: Task, texts: Sequence[str] | None) -> str:
    shown = texts if texts is not None else [""] * len(task.references)
    return "\n\n".join(_heading(ref, text) for ref, text in zip(task.references, shown, strict=True))


def _heading(reference: Reference, text: str) -> str:
    return f"[Reference {reference.number}]\n{text}"


async def without_reflection(client: LlmClient, task: Task, elements: Sequence[KeyElements], search: Search) -> Summary:
    """The search with nobody to choose: one draft for every reference, each continuing the one before."""
    return await incremental(client, task, known_by_elements(task, elements), unreflected(search))


def unreflected(search: Search) -> Search:
    """n_s = n_c = 1 and n_v = 0: of several drafts among which nobody chooses, all but one would be thrown away."""
    return replace(search, samples=1, votes=0, kept=1)


def planned_without_reflection(references: int, search: Search) -> int:
    """One draft for every reference."""
    return planned_calls(references, unreflected(search))
