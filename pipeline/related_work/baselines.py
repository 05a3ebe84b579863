"""The baselines of the ChatCite paper (section 5.1): zero-shot, few-shot, LitLLM, and its Table 2
"no incremental".

All ask the prompt p_s (summarize a paper) and all but LitLLM the prompt p_g (generate the section),
as the paper prints them. LitLLM (arXiv 2402.01788, 2412.15249) plans the section sentence by
sentence, then writes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pipeline.llm.client import REPAIR_TOKENS, Completion, LlmAnswerError, LlmClient, Spent, spent
from pipeline.llm.context import count_tokens, fit
from pipeline.llm.loop import side_by_side
from pipeline.llm.structured import make_form
from pipeline.related_work.key_elements import KeyElements
from pipeline.related_work.prompt_files import (
    PROMPTS,
    AnswerLength,
    answer_length,
    at_most,
    draft_length,
    style_examples,
    unnumbered,
)
from pipeline.related_work.summary import Summary, make_summary, truncated_counts
from pipeline.related_work.task import Task
from pipeline.settings import Settings
from pipeline.text import one_line

FEW_SHOT_EXAMPLES = 2
"""Style examples of few-shot and of ChatCite without incremental steps; the paper does not say how
many it has.
"""
# A summary of fewer tokens says next to nothing; where |R| leaves less for each, it is cut to fit.
_SHORTEST_SUMMARY = 32
# A plan's line: what its sentence says, in characters, and 30 to 50 tokens as JSON.
_ABOUT_CHARS = 120
_SENTENCE_TOKENS, _FRAME_TOKENS = 56, 32
# What a plan takes of a context at most, in parts of it: as an answer, and as a text to follow.
_PLAN_SHARE = 4
_NO_REFERENCE = "how the target paper differs"


# --- what the systems read
# ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PaperTexts:
    """The target's text and then each reference's, as one prompt has them together: the papers, or
    summaries.
    """

    texts: tuple[str, ...]
    trace: dict[str, Any]
    completions: tuple[Completion, ...] = ()
    """Of p_s; none where the papers are read as they are."""

    def target(self) -> str:
        return self.texts[0]

    def references(self, task: Task) -> str:
        return numbered_texts(task, self.texts[1:])

    def truncated(self, section: Completion) -> dict[str, Any]:
        """What a trace says of the texts that ended at their longest."""
        return truncated_counts(
            summaries=sum(summary.truncated for summary in self.completions),
            sections=int(section.truncated),
        )


async def read_papers(client: LlmClient, task: Task, settings: Settings, left: int) -> PaperTexts:
    """All texts in `left` tokens: as they are, in one step, or in two by one call of p_s for each
    of them.
    """
    if fits(task, left):
        return PaperTexts(task.texts, {"steps": 1})
    return await summarize_papers(client, task, settings, left)


def fits(task: Task, left: int) -> bool:
    """Whether the target's and all references' texts have at most so many tokens together."""
    return sum(count_tokens(text) for text in task.texts) <= left


async def summarize_papers(
    client: LlmClient, task: Task, settings: Settings, left: int
) -> PaperTexts:
    """Summaries of the target and each reference, cut to equal shares of `left` tokens where they
    are longer.
    """
    share = max(left // len(task.texts), 1)
    limit = (
        max(_SHORTEST_SUMMARY, min(settings.draft_tokens, share)) if settings.draft_tokens else None
    )
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
    return (
        await client.complete(messages, temperature=settings.temperature, max_tokens=length.limit),
        content.cut,
    )


def numbered_texts(task: Task, texts: Sequence[str] | None) -> str:
    """The references' texts under `[Reference i]` and title; None for the headings alone."""
    bodies = texts if texts is not None else [""] * len(task.references)
    return "\n\n".join(
        f"[Reference {reference.number}] {unnumbered(reference.title)}\n{unnumbered(text)}"
        for reference, text in zip(task.references, bodies, strict=True)
    )


# --- zero-shot, few-shot, and without incremental steps
# -------------------------------------------------------------


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
    papers = await read_papers(client, task, settings, _generate_room(task, settings, examples))
    return await _generate(client, task, settings, papers, examples)


async def without_incremental(
    client: LlmClient, task: Task, elements: Sequence[KeyElements], settings: Settings
) -> Summary:
    """Table 2's "no incremental" (section 5.3): summaries by p_s, then few-shot p_g with ChatCite's
    guidelines.

    The guidelines are there so that they are not what differs from ChatCite. Key elements and votes
    are not.
    """
    left = _generate_room(task, settings, FEW_SHOT_EXAMPLES, guided=True)
    papers = await summarize_papers(client, task, settings, left)
    return await _generate(client, task, settings, papers, FEW_SHOT_EXAMPLES, guided=True)


async def _generate(
    client: LlmClient,
    task: Task,
    settings: Settings,
    papers: PaperTexts,
    examples: int,
    *,
    guided: bool = False,
) -> Summary:
    length = draft_length(settings, len(task.references))
    values = _generate_values(task, settings, examples, guided=guided)
    messages = PROMPTS.messages(
        "generate", target=papers.target(), references=papers.references(task), **values
    )
    section = await client.complete(
        messages, temperature=settings.temperature, max_tokens=length.limit
    )
    trace = (
        papers.trace
        | papers.truncated(section)
        | ({"examples": values["examples"]} if examples else {})
    )
    return make_summary(section.text, task.numbers, trace, spent([*papers.completions, section]))


def _generate_room(task: Task, settings: Settings, examples: int, *, guided: bool = False) -> int:
    values = _generate_values(task, settings, examples, guided=guided)
    room, references = draft_length(settings, len(task.references)).room, numbered_texts(task, None)
    return PROMPTS.room(
        settings.llm_context, room, "generate", target="", references=references, **values
    )


def _generate_values(
    task: Task, settings: Settings, examples: int, *, guided: bool
) -> dict[str, Any]:
    styles = style_examples(task, examples, settings)
    words = draft_length(settings, len(task.references)).words
    return {"examples": styles, "guided": guided, "basis": "summaries", "words": words}


# --- LitLLM
# --------------------------------------------------------------------------------------------------


class PlanLine(NamedTuple):
    """One planned sentence: what it says, and the numbers of the references that it cites."""

    about: str
    cites: list[int]

    def text(self, place: int) -> str:
        """The line in LitLLM's form, `Cite [Reference 1] on line 2`, with what the sentence
        says.
        """
        named = ", ".join(f"[Reference {number}]" for number in self.cites)
        return f"Line {place}: {self.about}. " + (
            f"Cite {named} on line {place}." if named else "Cite nothing."
        )


async def litllm(
    client: LlmClient, task: Task, elements: Sequence[KeyElements], settings: Settings
) -> Summary:
    """The section after a plan by the same model; an unreadable plan is replaced by one line for
    each reference.
    """
    papers = await read_papers(client, task, settings, _litllm_room(task, settings))
    texts = {"target": papers.target(), "references": papers.references(task)}
    lines, plan, planning = await _plan(client, task, settings, texts)
    length = draft_length(settings, len(task.references))
    plan_lines = "\n".join(line.text(place) for place, line in enumerate(lines, 1))
    plan_text = fit(plan_lines, settings.llm_context // _PLAN_SHARE)
    messages = PROMPTS.messages(
        "planned", **texts, plan=plan_text.text, sentences=len(lines), words=length.words
    )
    section = await client.complete(
        messages, temperature=settings.temperature, max_tokens=length.limit
    )
    trace = papers.trace | papers.truncated(section) | {"plan": plan | {"cut": plan_text.cut}}
    return make_summary(
        section.text, task.numbers, trace, planning + spent([*papers.completions, section])
    )


def _litllm_room(task: Task, settings: Settings) -> int:
    """Tokens for the texts: what the tighter of the two prompts leaves."""
    references, count = numbered_texts(task, None), len(task.references)
    planning = PROMPTS.room(
        settings.llm_context,
        _plan_length(count, settings).room + REPAIR_TOKENS,
        "plan",
        target="",
        references=references,
        **_plan_values(count, settings),
    )
    length = draft_length(settings, len(task.references))
    values = {"plan": "", "sentences": most_lines(count), "words": length.words}
    writing = PROMPTS.room(
        settings.llm_context, length.room, "planned", target="", references=references, **values
    )
    return min(planning, writing - settings.llm_context // _PLAN_SHARE)


def most_lines(references: int) -> int:
    """Sentences of a plan: one for each reference, and two to begin and to end with."""
    return references + 2


def _plan_length(references: int, settings: Settings) -> AnswerLength:
    needed = min(
        _FRAME_TOKENS + _SENTENCE_TOKENS * most_lines(references),
        settings.llm_context // _PLAN_SHARE,
    )
    return AnswerLength(needed if settings.draft_tokens else None, needed)


def _plan_values(references: int, settings: Settings) -> dict[str, int | None]:
    """Values of the prompt; a section without a limit has a plan without one."""
    limited = bool(settings.draft_tokens)
    return {
        "count": references,
        "most": most_lines(references) if limited else None,
        "characters": _ABOUT_CHARS if limited else None,
    }


async def _plan(
    client: LlmClient, task: Task, settings: Settings, texts: dict[str, str]
) -> tuple[list[PlanLine], dict[str, Any], Spent]:
    """The lines of the plan, what a trace says of it, and what it cost."""
    count = len(task.references)
    values = _plan_values(count, settings)
    messages = PROMPTS.messages("plan", **texts, **values)
    schema = plan_model(values["most"], values["characters"])
    try:
        answer = await client.answer(
            messages, schema, max_tokens=_plan_length(count, settings).limit
        )
    except LlmAnswerError as error:
        return *complete_plan([], task, str(error)), error.spent
    lines = [PlanLine(one_line(line.about), line.cites) for line in answer.value.sentences]
    return *complete_plan(lines, task), answer.spent


def plan_model(most: int | None, characters: int | None) -> type[Any]:
    """The form of a plan; bounded, so that a small model under constrained decoding comes to an
    end.
    """
    sentence = make_form(
        "PlannedSentence", about=at_most(str, characters), cites=at_most(list[int], most)
    )
    return make_form("Plan", sentences=at_most(list[sentence], most))  # type: ignore[valid-type]


def complete_plan(
    lines: Sequence[PlanLine], task: Task, failure: str | None = None
) -> tuple[list[PlanLine], dict[str, Any]]:
    """The plan without numbers that no reference has, and with a line for each reference that it
    left out; and what a trace says of it.

    failure: why the model's own plan could not be read.
    """
    titles = {reference.number: reference.title for reference in task.references}
    planned = [number for line in lines for number in line.cites]
    complete = [
        PlanLine(line.about or _NO_REFERENCE, [n for n in dict.fromkeys(line.cites) if n in titles])
        for line in lines
    ]
    added = [number for number in titles if number not in planned]
    complete += [PlanLine(f"what {titles[number]} does", [number]) for number in added]
    dropped = list(dict.fromkeys(number for number in planned if number not in titles))
    trace = {
        "lines": [line._asdict() for line in complete],
        "dropped": dropped,
        "added": added,
        "failure": failure,
    }
    return complete, trace
