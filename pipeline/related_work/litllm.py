"""LitLLM's way (arXiv 2402.01788, 2412.15249): a plan of the section, sentence by sentence, then the section.

The ChatCite paper has it read what the zero-shot baseline reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, create_model

from pipeline.llm.client import REPAIR_TOKENS, LlmAnswerError, LlmClient, Spent, spent
from pipeline.llm.context import fit
from pipeline.llm.structured import AtMost
from pipeline.related_work.prompting import PROMPTS, Task, room, words_of
from pipeline.related_work.summarising import Baseline, fits, numbered, read_all
from pipeline.related_work.summary import Summary, make_summary

_ABOUT_CHARS = 120
# A planned sentence takes 30 to 50 tokens as JSON.
_SENTENCE_TOKENS = 56
_FRAME_TOKENS = 32
# What a plan may take of a context at most, in parts of it: as an answer, and as a text to follow.
_SHARE = 4
_NO_REFERENCE = "how the target paper differs"


@dataclass(frozen=True, slots=True)
class Line:
    """One planned sentence: what it is about, and the numbers of the references that it cites."""

    about: str
    cites: tuple[int, ...]

    def text(self, place: int) -> str:
        """The line in LitLLM's form, `Cite [Reference 1] on line 2`, with what the sentence says."""
        named = ", ".join(f"[Reference {number}]" for number in self.cites)
        return f"Line {place}: {self.about}. " + (f"Cite {named} on line {place}." if named else "Cite nothing.")


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan that can be followed: every reference is in it, none that there is not."""

    lines: tuple[Line, ...]
    dropped: tuple[int, ...]
    """Numbers that were planned and that no reference has."""
    added: tuple[int, ...]
    """References that were left out, each given a line of its own at the end."""

    def text(self) -> str:
        return "\n".join(line.text(place) for place, line in enumerate(self.lines, 1))

    def trace(self) -> dict[str, Any]:
        lines = [{"about": line.about, "cites": list(line.cites)} for line in self.lines]
        return {"lines": lines, "dropped": list(self.dropped), "added": list(self.added)}


async def litllm(client: LlmClient, task: Task, baseline: Baseline) -> Summary:
    """The section written after a plan of the model's own; an unreadable plan is replaced by one line per reference."""
    read = await read_all(client, task, baseline, _room(task, baseline))
    plan, failure, planning = await _plan(client, task, baseline, read.target(), read.references(task))
    longest = baseline.longest(task)
    values = {"target": read.target(), "references": read.references(task), "words": words_of(longest)}
    told = fit(plan.text(), _plan_tokens(baseline.context))
    messages = PROMPTS.messages("planned", **values, plan=told.text, sentences=len(plan.lines))
    written = await client.complete(messages, temperature=baseline.temperature, max_tokens=longest)
    trace = read.trace | {"plan": plan.trace() | {"failure": failure, "cut": told.cut}, "truncated": written.truncated}
    return make_summary(written.text, task.numbers, trace, read.spent + planning + spent([written]))


def planned_calls(references: int, *, whole: bool = False) -> int:
    """The plan and the section; before them one call of p_s for each paper where the texts do not fit whole.

    One more where the plan must be repaired.
    """
    return 2 if whole else references + 3


def reads_whole(task: Task, baseline: Baseline) -> bool:
    """Whether the texts of a task fit as they are, beside the longest plan."""
    return fits(task, _room(task, baseline))


def _room(task: Task, baseline: Baseline) -> int:
    """Tokens for the texts: what the tighter of the two prompts leaves."""
    headings, count = numbered(task, None), len(task.references)
    frame = {"target": "", "references": headings}
    longest = _longest(count, baseline.context)
    planning = room(baseline.context, longest + REPAIR_TOKENS, "plan", **frame, **_frame(count))
    section = baseline.longest(task)
    told = {"plan": "", "sentences": most_lines(count), "words": words_of(section)}
    writing = room(baseline.context, section, "planned", **frame, **told)
    return min(planning, writing - _plan_tokens(baseline.context))


def _plan_tokens(context: int) -> int:
    """What a plan may take in the prompt that follows it."""
    return context // _SHARE


def most_lines(references: int) -> int:
    """Sentences of a plan at most: one for each reference, and two to begin and to end with."""
    return references + 2


def _longest(references: int, context: int) -> int:
    return min(_FRAME_TOKENS + _SENTENCE_TOKENS * most_lines(references), context // _SHARE)


def _frame(references: int) -> dict[str, int]:
    return {"count": references, "most": most_lines(references), "characters": _ABOUT_CHARS}


async def _plan(
    client: LlmClient, task: Task, baseline: Baseline, target: str, references: str
) -> tuple[Plan, str | None, Spent]:
    """The plan, why it is not the model's own where it is not, and what it cost."""
    count = len(task.references)
    messages = PROMPTS.messages("plan", target=target, references=references, **_frame(count))
    try:
        answer = await client.answer(messages, plan_model(count), max_tokens=_longest(count, baseline.context))
    except LlmAnswerError as error:
        return mended([], task), str(error), error.spent
    lines = [Line(" ".join(each.about.split()), tuple(each.cites)) for each in answer.value.sentences]  # type: ignore[attr-defined]
    return mended(lines, task), None, answer.spent


def plan_model(references: int) -> type[BaseModel]:
    """The form of a plan, bounded so that a small model under constrained decoding comes to an end."""
    numbers = Annotated[list[int], AtMost(references)]
    sentence = create_model(
        "PlannedSentence",
        __config__=ConfigDict(extra="forbid"),
        about=(Annotated[str, AtMost(_ABOUT_CHARS)], ...),
        cites=(numbers, ...),
    )
    some = Annotated[list[sentence], AtMost(most_lines(references))]  # type: ignore[valid-type]
    return create_model("Plan", __config__=ConfigDict(extra="forbid"), sentences=(some, ...))


def mended(lines: Sequence[Line], task: Task) -> Plan:
    """The plan without numbers that no reference has, and with a line for each reference that it left out."""
    titles = {reference.number: reference.title for reference in task.references}
    planned = [number for line in lines for number in line.cites]
    kept = [
        Line(line.about or _NO_REFERENCE, tuple(n for n in dict.fromkeys(line.cites) if n in titles)) for line in lines
    ]
    missing = tuple(number for number in titles if number not in planned)
    added = [Line(f"what {titles[number]} does", (number,)) for number in missing]
    dropped = tuple(dict.fromkeys(number for number in planned if number not in titles))
    return Plan((*kept, *added), dropped, missing)
