"""LitLLM (arXiv 2402.01788, 2412.15249): a plan of the sentences, then the section.

`litllm` is what the ChatCite paper ran (section 5.1): p_g on the papers themselves, in one call
with a chain of thought. `litllm_plan` asks for the plan first, as an answer of its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from pipeline.llm.client import REPAIR_TOKENS, LlmClient
from pipeline.llm.context import fit
from pipeline.llm.messages import spent
from pipeline.llm.structured import make_form
from pipeline.related_work.baselines import prompt_texts, read_papers
from pipeline.related_work.key_elements import KeyElements
from pipeline.related_work.prompt_files import PROMPTS, AnswerLength, at_most, draft_length
from pipeline.related_work.summary import Summary, cited_numbers, make_summary
from pipeline.related_work.system import WRITING, RelatedWorkSystem
from pipeline.related_work.task import Task
from pipeline.settings import Settings
from pipeline.text import one_line

# A plan's line: the content of its sentence, in characters, and 30 to 50 tokens as JSON.
_ABOUT_CHARS = 120
_SENTENCE_TOKENS, _FRAME_TOKENS = 56, 32
# A plan takes at most this part of the context, as an answer and as a text to follow.
_PLAN_SHARE = 4
_NO_REFERENCE = "how the target paper differs"
# A plan has about as many lines as the section has sentences.
_PLAN_AND_SECTION = 2
# The line between plan and section, also as a heading or in bold.
_SECTION_HEAD = re.compile(
    r"^(?:[^\w\n]|_)*+Related Work(?:[^\w\n]|_)*+$", re.IGNORECASE | re.MULTILINE
)


class PlanLine(NamedTuple):
    """One planned sentence: its content, and the numbers of the references that it cites."""

    about: str
    cites: list[int]

    def text(self, place: int) -> str:
        """The line in LitLLM's form: the sentence's content, `Cite [Reference 1] on line 2`."""
        cited = ", ".join(f"[Reference {number}]" for number in self.cites)
        order = f"Cite {cited} on line {place}." if cited else "Cite nothing."
        return f"Line {place}: {self.about}. {order}"


async def litllm(
    client: LlmClient, task: Task, elements: Sequence[KeyElements], settings: Settings
) -> Summary:
    """The section that p_g writes below its own plan; all of the answer where no line divides them.

    Papers that do not fit the context are summarized by p_s, as for zero-shot.
    """
    length = draft_length(settings, len(task.references)).times(_PLAN_AND_SECTION)
    room = PROMPTS.room(settings.llm_context, length.room, "litllm", **prompt_texts(task))
    papers = await read_papers(client, task, settings, room)
    messages = PROMPTS.messages("litllm", **prompt_texts(task, papers))
    answer = await client.complete(
        messages, temperature=settings.temperature, max_tokens=length.limit
    )
    plan, section = divide_answer(answer.text)
    lines = [{"about": line, "cites": cited_numbers(line)} for line in plan.splitlines() if line]
    trace = papers.trace | {"plan": {"lines": lines}}
    cost = spent([*papers.completions, answer])
    return make_summary(section, task.numbers, trace, cost, is_cut=answer.truncated)


def divide_answer(text: str) -> tuple[str, str]:
    """The plan and the section of an answer; no plan where nothing follows a line "Related Work".

    The last such line counts: a plan may name the section too.
    """
    heads = list(_SECTION_HEAD.finditer(text))
    if not heads or not text[heads[-1].end() :].strip():
        return "", text
    return text[: heads[-1].start()].strip(), text[heads[-1].end() :].strip()


async def litllm_plan(
    client: LlmClient, task: Task, elements: Sequence[KeyElements], settings: Settings
) -> Summary:
    """The section after a plan by the same model."""
    count, context = len(task.references), settings.llm_context
    heads = prompt_texts(task)
    values, plan_length = _plan_limits(count, settings)
    length = draft_length(settings, count)
    planning_room = PROMPTS.room(
        context, plan_length.room + REPAIR_TOKENS, "plan", **heads, **values
    )
    section_values = {"plan": "", "sentences": most_lines(count), "words": length.words}
    room = PROMPTS.room(context, length.room, "planned", **heads, **section_values)
    room = min(planning_room, room - context // _PLAN_SHARE)
    papers = await read_papers(client, task, settings, room)
    texts = prompt_texts(task, papers)
    planning = await client.answer(
        PROMPTS.messages("plan", **texts, **values),
        plan_model(values["most"], values["characters"]),
        max_tokens=plan_length.limit,
    )
    answered = [PlanLine(one_line(line.about), line.cites) for line in planning.value.sentences]
    lines, plan = complete_plan(answered, task)
    plan_lines = "\n".join(line.text(place) for place, line in enumerate(lines, 1))
    plan_text = fit(plan_lines, context // _PLAN_SHARE)
    messages = PROMPTS.messages(
        "planned", **texts, plan=plan_text.text, sentences=len(lines), words=length.words
    )
    section = await client.complete(
        messages, temperature=settings.temperature, max_tokens=length.limit
    )
    trace = papers.trace | {"plan": plan | {"cut": plan_text.cut}}
    cost = planning.spent + spent([*papers.completions, section])
    return make_summary(section.text, task.numbers, trace, cost, is_cut=section.truncated)


def most_lines(references: int) -> int:
    """Sentences of a plan: one for each reference, and two to begin and to end with."""
    return references + 2


def _plan_limits(references: int, settings: Settings) -> tuple[dict[str, int | None], AnswerLength]:
    """Values of the prompt for a plan, and its length; a section without a limit has a plan without
    one.
    """
    limited = bool(settings.draft_tokens)
    needed = min(
        _FRAME_TOKENS + _SENTENCE_TOKENS * most_lines(references),
        settings.llm_context // _PLAN_SHARE,
    )
    values = {
        "count": references,
        "most": most_lines(references) if limited else None,
        "characters": _ABOUT_CHARS if limited else None,
    }
    return values, AnswerLength(needed if limited else None, needed)


def plan_model(most: int | None, characters: int | None) -> type[Any]:
    """The form of a plan, bounded so that a small model under constrained decoding ends."""
    sentence = make_form(
        "PlannedSentence", about=at_most(str, characters), cites=at_most(list[int], most)
    )
    return make_form("Plan", sentences=at_most(list[sentence], most))  # type: ignore[valid-type]


def complete_plan(lines: Sequence[PlanLine], task: Task) -> tuple[list[PlanLine], dict[str, Any]]:
    """The plan without numbers that no reference has, with a line for each reference that it left
    out; and its trace.
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
    }
    return complete, trace


LITLLM = RelatedWorkSystem(
    name="litllm", version=2, write=litllm, settings=WRITING, prompts=("summarize", "litllm")
)
LITLLM_PLAN = RelatedWorkSystem(
    name="litllm_plan",
    answers_of="litllm",
    write=litllm_plan,
    settings=WRITING,
    prompts=("summarize", "plan", "planned"),
)
