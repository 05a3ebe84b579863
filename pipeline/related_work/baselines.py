"""The baselines of the ChatCite paper (section 5.1): zero-shot, few-shot, LitLLM, and its Table 2 "no incremental".

All but LitLLM ask the prompts p_s (summarize a paper) and p_g (generate the section) that the paper prints, alone or
with our additions (CITELOOM_BASELINE_PROMPTS). LitLLM (arXiv 2402.01788, 2412.15249) plans the section sentence by
sentence, then writes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pipeline.llm.client import REPAIR_TOKENS, Completion, LlmAnswerError, LlmClient, Spent, spent
from pipeline.llm.context import count_tokens, fit
from pipeline.llm.loop import side_by_side
from pipeline.llm.structured import make_form
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
from pipeline.related_work.task_model import Task

FEW_SHOT_EXAMPLES = 2
"""Style examples of few-shot and of ChatCite without incremental steps; the paper does not say how many it has."""
# A summary of fewer tokens says next to nothing; where |R| leaves less for each, it is cut to fit.
_SHORTEST_SUMMARY = 32
# A plan's line: what its sentence says, in characters, and 30 to 50 tokens as JSON.
_ABOUT_CHARS = 120
_SENTENCE_TOKENS, _FRAME_TOKENS = 56, 32
# What a plan takes of a context at most, in parts of it: as an answer, and as a text to follow.
_PLAN_SHARE = 4
_NO_REFERENCE = "how the target paper differs"


@dataclass(frozen=True, slots=True)
class BaselineConfig:
    """The baselines' parameters, in tokens but for the temperature. draft_tokens: None for no limit."""

    temperature: float
    draft_tokens: int | None
    context: int
    prompts: Literal["printed", "extended"] = "printed"
    """p_s and p_g as the paper prints them, or with a system message and marks around papers."""

    def section_length(self, task: Task) -> AnswerLength:
        return draft_length(self.draft_tokens, len(task.references), self.context)

    def prompt(self, name: str) -> str:
        return name if self.prompts == "printed" else f"{name}_extended"


# --- what the systems read ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PaperTexts:
    """The target's text and then each reference's, as one prompt has them together: the papers, or summaries."""

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
            summaries=sum(summary.truncated for summary in self.completions), sections=int(section.truncated)
        )


async def read_papers(client: LlmClient, task: Task, config: BaselineConfig, left: int) -> PaperTexts:
    """All texts in `left` tokens: as they are, in one step, or in two by one call of p_s for each of them."""
    if fits(task, left):
        return PaperTexts((task.description, *task.contents), {"steps": 1})
    return await summarize_papers(client, task, config, left)


def fits(task: Task, left: int) -> bool:
    """Whether the target's and all references' texts have at most so many tokens together."""
    return sum(count_tokens(text) for text in (task.description, *task.contents)) <= left


async def summarize_papers(client: LlmClient, task: Task, config: BaselineConfig, left: int) -> PaperTexts:
    """Summaries of the target and each reference, cut to equal shares of `left` tokens where they are longer."""
    texts = (task.description, *task.contents)
    share = max(left // len(texts), 1)
    limit = None if config.draft_tokens is None else max(_SHORTEST_SUMMARY, min(config.draft_tokens, share))
    length = answer_length(limit, config.context)
    summaries = await side_by_side(summarize(client, config, text, length) for text in texts)
    fitted = [fit(PROMPTS.unwrapped(summary.text), share) for summary, _ in summaries]
    trace = {
        "steps": 2,
        "summaries": [summary.text for summary, _ in summaries],
        "contents_cut": [number for number, (_, cut) in enumerate(summaries) if cut],
        "summaries_cut": [number for number, text in enumerate(fitted) if text.cut],
    }
    return PaperTexts(tuple(text.text for text in fitted), trace, tuple(summary for summary, _ in summaries))


async def summarize(
    client: LlmClient, config: BaselineConfig, text: str, length: AnswerLength
) -> tuple[Completion, bool]:
    """p_s on one paper, cut to fit; and whether the paper was cut."""
    name, values = config.prompt("summarize"), {"words": length.words}
    content = fit(text, PROMPTS.room(config.context, length.room, name, content="", **values))
    messages = PROMPTS.messages(name, content=content.text, **values)
    return await client.complete(messages, temperature=config.temperature, max_tokens=length.limit), content.cut


def numbered_texts(task: Task, texts: Sequence[str] | None) -> str:
    """The references' texts under `[Reference i]` and title; None for the headings alone."""
    bodies = texts if texts is not None else [""] * len(task.references)
    return "\n\n".join(
        f"[Reference {reference.number}] {unnumbered(reference.title)}\n{unnumbered(text)}"
        for reference, text in zip(task.references, bodies, strict=True)
    )


# --- zero-shot, few-shot, and without incremental steps -------------------------------------------------------------


async def zero_shot(client: LlmClient, task: Task, config: BaselineConfig, examples: int = 0) -> Summary:
    """The section that p_g writes, in one call or after one call of p_s for the target and each reference.

    examples: how many of the task's examples are shown, with the paper's words for few-shot.
    """
    papers = await read_papers(client, task, config, _generate_room(task, config, examples))
    return await _generate(client, task, config, papers, examples)


async def without_incremental(client: LlmClient, task: Task, config: BaselineConfig) -> Summary:
    """Table 2's "no incremental" (section 5.3): summaries by p_s, then few-shot p_g with ChatCite's guidelines.

    The guidelines are there so that they are not what differs from ChatCite. Key elements and votes are not.
    """
    left = _generate_room(task, config, FEW_SHOT_EXAMPLES, guided=True)
    papers = await summarize_papers(client, task, config, left)
    return await _generate(client, task, config, papers, FEW_SHOT_EXAMPLES, guided=True)


async def _generate(
    client: LlmClient,
    task: Task,
    config: BaselineConfig,
    papers: PaperTexts,
    examples: int,
    *,
    guided: bool = False,
) -> Summary:
    length, values = config.section_length(task), _generate_values(task, config, examples, guided=guided)
    messages = PROMPTS.messages(
        config.prompt("generate"), target=papers.target(), references=papers.references(task), **values
    )
    section = await client.complete(messages, temperature=config.temperature, max_tokens=length.limit)
    trace = papers.trace | papers.truncated(section) | ({"examples": values["examples"]} if examples else {})
    return make_summary(section.text, task.numbers, trace, spent([*papers.completions, section]))


def _generate_room(task: Task, config: BaselineConfig, examples: int, *, guided: bool = False) -> int:
    values = _generate_values(task, config, examples, guided=guided)
    room, name = config.section_length(task).room, config.prompt("generate")
    return PROMPTS.room(config.context, room, name, target="", references=numbered_texts(task, None), **values)


def _generate_values(task: Task, config: BaselineConfig, examples: int, *, guided: bool) -> dict[str, Any]:
    styles = style_examples(task, examples, config.context)
    words = config.section_length(task).words
    return {"examples": styles, "guided": guided, "basis": "summaries", "words": words}


# --- LitLLM ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PlanLine:
    """One planned sentence: what it says, and the numbers of the references that it cites."""

    about: str
    cites: tuple[int, ...]

    def text(self, place: int) -> str:
        """The line in LitLLM's form, `Cite [Reference 1] on line 2`, with what the sentence says."""
        named = ", ".join(f"[Reference {number}]" for number in self.cites)
        return f"Line {place}: {self.about}. " + (f"Cite {named} on line {place}." if named else "Cite nothing.")


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan that can be followed: every reference of the task is in it, and no other number."""

    lines: tuple[PlanLine, ...]
    dropped: tuple[int, ...]
    """Numbers that the model planned and that no reference has."""
    added: tuple[int, ...]
    """References that the model left out, each with a line of its own at the end."""
    failure: str | None = None
    """Why it is not the model's own."""

    def text(self) -> str:
        return "\n".join(line.text(place) for place, line in enumerate(self.lines, 1))

    def trace(self) -> dict[str, Any]:
        lines = [{"about": line.about, "cites": list(line.cites)} for line in self.lines]
        return {"lines": lines, "dropped": list(self.dropped), "added": list(self.added), "failure": self.failure}


async def litllm(client: LlmClient, task: Task, config: BaselineConfig) -> Summary:
    """The section after a plan by the same model; an unreadable plan is replaced by one line for each reference."""
    papers = await read_papers(client, task, config, _litllm_room(task, config))
    texts = {"target": papers.target(), "references": papers.references(task)}
    plan, planning = await _plan(client, task, config, texts)
    length = config.section_length(task)
    plan_text = fit(plan.text(), config.context // _PLAN_SHARE)
    messages = PROMPTS.messages("planned", **texts, plan=plan_text.text, sentences=len(plan.lines), words=length.words)
    section = await client.complete(messages, temperature=config.temperature, max_tokens=length.limit)
    trace = papers.trace | papers.truncated(section) | {"plan": plan.trace() | {"cut": plan_text.cut}}
    return make_summary(section.text, task.numbers, trace, planning + spent([*papers.completions, section]))


def _litllm_room(task: Task, config: BaselineConfig) -> int:
    """Tokens for the texts: what the tighter of the two prompts leaves."""
    references, count = numbered_texts(task, None), len(task.references)
    planning = PROMPTS.room(
        config.context,
        _plan_length(count, config).room + REPAIR_TOKENS,
        "plan",
        target="",
        references=references,
        **_plan_values(count, config),
    )
    length = config.section_length(task)
    values = {"plan": "", "sentences": most_lines(count), "words": length.words}
    writing = PROMPTS.room(config.context, length.room, "planned", target="", references=references, **values)
    return min(planning, writing - config.context // _PLAN_SHARE)


def most_lines(references: int) -> int:
    """Sentences of a plan: one for each reference, and two to begin and to end with."""
    return references + 2


def _plan_length(references: int, config: BaselineConfig) -> AnswerLength:
    needed = min(_FRAME_TOKENS + _SENTENCE_TOKENS * most_lines(references), config.context // _PLAN_SHARE)
    return AnswerLength(None if config.draft_tokens is None else needed, needed)


def _plan_values(references: int, config: BaselineConfig) -> dict[str, int | None]:
    """Values of the prompt; a section without a limit has a plan without one."""
    limited = config.draft_tokens is not None
    return {
        "count": references,
        "most": most_lines(references) if limited else None,
        "characters": _ABOUT_CHARS if limited else None,
    }


async def _plan(client: LlmClient, task: Task, config: BaselineConfig, texts: dict[str, str]) -> tuple[Plan, Spent]:
    """The plan, and what it cost."""
    count = len(task.references)
    values = _plan_values(count, config)
    messages = PROMPTS.messages("plan", **texts, **values)
    schema = plan_model(values["most"], values["characters"])
    try:
        answer = await client.answer(messages, schema, max_tokens=_plan_length(count, config).limit)
    except LlmAnswerError as error:
        return complete_plan([], task, str(error)), error.spent
    lines = [PlanLine(" ".join(line.about.split()), tuple(line.cites)) for line in answer.value.sentences]
    return complete_plan(lines, task), answer.spent


def plan_model(most: int | None, characters: int | None) -> type[Any]:
    """The form of a plan; bounded, so that a small model under constrained decoding comes to an end."""
    sentence = make_form("PlannedSentence", about=at_most(str, characters), cites=at_most(list[int], most))
    return make_form("Plan", sentences=at_most(list[sentence], most))  # type: ignore[valid-type]


def complete_plan(lines: Sequence[PlanLine], task: Task, failure: str | None = None) -> Plan:
    """The plan without numbers that no reference has, and with a line for each reference that it left out."""
    titles = {reference.number: reference.title for reference in task.references}
    planned = [number for line in lines for number in line.cites]
    usable = [
        PlanLine(line.about or _NO_REFERENCE, tuple(n for n in dict.fromkeys(line.cites) if n in titles))
        for line in lines
    ]
    missing = tuple(number for number in titles if number not in planned)
    added = [PlanLine(f"what {titles[number]} does", (number,)) for number in missing]
    dropped = tuple(dict.fromkeys(number for number in planned if number not in titles))
    return Plan((*usable, *added), dropped, missing, failure)
