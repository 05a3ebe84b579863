"""ChatCite's reflective incremental generator, Algorithm 1 of arXiv 2403.02574, and two of its ablations (section 5.3).

Breadth-first over the references in order: every draft of the beam is continued n_s times, the reflective evaluator
votes n_v times over all continuations, and the n_c with most votes are the next beam. The third ablation, without
incremental steps, is a baseline with guidance: `pipeline.related_work.baselines`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pipeline.llm.client import Completion, LlmClient, Spent, spent
from pipeline.llm.context import count_tokens, fit
from pipeline.llm.loop import side_by_side
from pipeline.llm.messages import Message
from pipeline.related_work.baselines import BaselineConfig, summarize
from pipeline.related_work.key_elements import KeyElements
from pipeline.related_work.prompt_files import (
    PROMPTS,
    AnswerLength,
    draft_length,
    style_examples,
    unnumbered,
)
from pipeline.related_work.summary import Summary, make_summary, split_sentences, truncated_counts
from pipeline.related_work.task_model import Reference, Task

KEY_ELEMENTS = "key elements"
"""What drafts are written from; in the ablation without key elements it is summaries."""

# What a prompt says of a work of which only this is known: a model would otherwise add what it believes to know.
_SOURCE_NOTES = {
    "abstract": "Only the abstract of this work is known.",
    "item": "Only the bibliography item of this work is known: say no more of it than its title does.",
}
_VERDICT = re.compile(
    r"best\s+(?:choice|draft|option)\s*(?:is|:)\W*(?:the\s+)?(?:(?:choice|draft|option|number|no\.?)\W*)?"
    r"([0-9]{1,4})(?!\.?[0-9])",
    re.IGNORECASE,
)
_BARE_NUMBER = re.compile(r"\W*(?:choice\W*)?([0-9]{1,4})\W*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class BeamConfig:
    """The algorithm's parameters. The paper gives none of them but n_c·n_s = 6, in Figure 2: the defaults are ours."""

    samples: int
    """n_s: continuations of every draft of the beam."""
    votes: int
    """n_v: votes for each reference; 0 for none, the drafts then ranking in the order they were written."""
    beam: int
    """n_c: drafts that are continued."""
    temperature: float
    draft: AnswerLength
    vote: AnswerLength
    context: int
    vote_temperature: float = 0.7
    examples: int = 0
    """How many of a task's examples every prompt for a draft shows."""

    def sized(self, references: int, factor: int = 1) -> BeamConfig:
        """With drafts that are long enough for so many references; `factor` as in `draft_length`."""
        return replace(self, draft=draft_length(self.draft.limit, references, self.context, factor))

    def draft_values(self, task: Task, basis: str) -> dict[str, Any]:
        """Values that every prompt for drafts of this task has."""
        return {"examples": self._examples(task), "basis": basis, "words": self.draft.words}

    def examples_trace(self, task: Task) -> dict[str, Any]:
        """What a trace says of the examples; nothing where there are none."""
        return {"examples": self._examples(task)} if self.examples else {}

    def _examples(self, task: Task) -> list[str]:
        return style_examples(task, self.examples, self.context)


@dataclass(frozen=True, slots=True)
class PaperContext:
    """What prompts say of one paper: `text` to the writer, `gist`, one line, to the evaluator."""

    text: str
    gist: str

    @classmethod
    def of(cls, text: str, gist: str) -> PaperContext:
        """From the text of a paper or model: nothing in it can pass for the head of another reference."""
        return cls(unnumbered(text), unnumbered(gist))


@dataclass(frozen=True, slots=True)
class Draft:
    """One draft. parent: its place in the beam before, from 1; 0 for the empty draft. truncated: at its longest."""

    text: str
    parent: int
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class Ballot:
    """The votes over some drafts, which are numbered from 1."""

    votes: tuple[int | None, ...]
    """The choice of each vote; None for an abstention: no number could be read, or none that is a choice."""
    tallies: tuple[int, ...]
    completions: tuple[Completion, ...]
    cut: bool
    """Whether anything was cut to fit the context."""

    @property
    def truncated(self) -> int:
        return sum(completion.truncated for completion in self.completions)


@dataclass(frozen=True, slots=True)
class BeamStep:
    """What happened for one reference. Choices are numbered from 1, as the evaluator sees them."""

    reference: int
    drafts: tuple[Draft, ...]
    ballot: Ballot
    beam: tuple[int, ...]
    """The choices that are continued, best first."""
    cut: bool
    """Whether anything was cut to fit the context."""
    spent: Spent

    def next_beam(self) -> list[Draft]:
        return [self.drafts[choice - 1] for choice in self.beam]

    def trace(self) -> dict[str, Any]:
        drafts = [{"choice": i, "parent": draft.parent, "text": draft.text} for i, draft in enumerate(self.drafts, 1)]
        truncated = [choice for choice, draft in enumerate(self.drafts, 1) if draft.truncated]
        return step_trace(self.reference, drafts, self.ballot, self.beam, self.cut) | {"truncated": truncated}


def step_trace(
    reference: int, drafts: list[dict[str, Any]], ballot: Ballot, beam: Sequence[int], cut: bool
) -> dict[str, Any]:
    """What the trace of any beam search says of one step."""
    return {
        "reference": reference,
        "drafts": drafts,
        "votes": list(ballot.votes),
        "abstentions": ballot.votes.count(None),
        "tallies": list(ballot.tallies),
        "kept": list(beam),
        "cut": cut,
    }


async def chatcite(client: LlmClient, task: Task, elements: Sequence[KeyElements], config: BeamConfig) -> Summary:
    """The best draft after the last reference. `elements`: the target's, then each reference's, in order."""
    return await beam_search(client, task, element_contexts(task, elements), config)


async def without_elements(client: LlmClient, task: Task, config: BeamConfig, baseline: BaselineConfig) -> Summary:
    """The search over summaries by the baseline's prompt p_s, in place of the seven answers."""
    length = draft_length(baseline.draft_tokens, 0, baseline.context)
    texts = (task.description, *task.contents)
    summaries = await side_by_side(summarize(client, baseline, text, length) for text in texts)
    titles = (task.title, *(reference.title for reference in task.references))
    papers = [
        _summary_context(title, PROMPTS.unwrapped(summary.text))
        for title, (summary, _) in zip(titles, summaries, strict=True)
    ]
    completions = [summary for summary, _ in summaries]
    section = await beam_search(client, task, papers, config, "summary", completions)
    trace = {
        "summaries": [summary.text for summary in completions],
        "contents_cut": [number for number, (_, cut) in enumerate(summaries) if cut],
    }
    return replace(section, trace=dict(section.trace) | trace)


async def without_reflection(
    client: LlmClient, task: Task, elements: Sequence[KeyElements], config: BeamConfig
) -> Summary:
    """The search without an evaluator: one draft for every reference, each continuing the one before."""
    return await beam_search(client, task, element_contexts(task, elements), unreflected(config))


def unreflected(config: BeamConfig) -> BeamConfig:
    """n_s = n_c = 1 and n_v = 0: of several drafts without votes all but one would be thrown away."""
    return replace(config, samples=1, votes=0, beam=1)


# --- what is known of the papers ------------------------------------------------------------------------------------


def element_contexts(task: Task, elements: Sequence[KeyElements]) -> list[PaperContext]:
    """The key elements of the target and of each reference, in order, as prompts have them."""
    target, *others = elements
    references = [_element_context(*pair) for pair in zip(task.references, others, strict=True)]
    return [PaperContext.of(target.text(task.title), target.gist()), *references]


def _element_context(reference: Reference, elements: KeyElements) -> PaperContext:
    note = _SOURCE_NOTES.get(reference.source)
    if note is None:
        return PaperContext.of(elements.text(reference.title), elements.gist())
    text = f"Title: {reference.title}" if reference.source == "item" else elements.text(reference.title)
    return PaperContext.of(f"{text}\n{note}", elements.gist() or note)


def _summary_context(title: str, summary: str) -> PaperContext:
    """A summary; the evaluator has its first sentence, about as long as a key element."""
    return PaperContext.of(f"Title: {title}\n{summary}", next(iter(split_sentences(summary)), ""))


def reference_lines(references: Sequence[Reference], papers: Sequence[PaperContext]) -> str:
    """Each reference in one line: what the evaluator checks drafts against, short since it grows with |R|."""
    return "\n".join(
        f"[Reference {reference.number}] {unnumbered(reference.title)}. {paper.gist}".strip()
        for reference, paper in zip(references, papers, strict=True)
    )


# --- the search -----------------------------------------------------------------------------------------------------


async def beam_search(
    client: LlmClient,
    task: Task,
    papers: Sequence[PaperContext],
    config: BeamConfig,
    basis: str = KEY_ELEMENTS,
    summaries: Sequence[Completion] = (),
) -> Summary:
    """Algorithm 1 over the target and its references, in order. summaries: calls made before, to be counted."""
    config = config.sized(len(task.references))
    beam = [Draft("", 0)]
    steps: list[BeamStep] = []
    for step in range(1, len(task.references) + 1):
        done = await _take_step(client, config, task, papers[: step + 1], beam, basis)
        steps.append(done)
        beam = done.next_beam()
    trace = config.examples_trace(task) | {"rounds": [step.trace() for step in steps]}
    trace |= truncated_counts(
        summaries=sum(summary.truncated for summary in summaries),
        drafts=sum(draft.truncated for step in steps for draft in step.drafts),
        votes=sum(step.ballot.truncated for step in steps),
    )
    cost = sum((step.spent for step in steps), spent(summaries))
    return make_summary(beam[0].text, task.numbers, trace, cost)


async def _take_step(
    client: LlmClient,
    config: BeamConfig,
    task: Task,
    papers: Sequence[PaperContext],
    beam: Sequence[Draft],
    basis: str,
) -> BeamStep:
    """One reference: the last of `papers`, whose first is the target; the drafts cite those between already."""
    step = len(papers) - 1
    number = task.references[step - 1].number
    values = config.draft_values(task, basis) | {"number": number}
    continued = await side_by_side(
        _continue(client, config, values, papers[0].text, draft.text, papers[-1].text, place)
        for place, draft in enumerate(beam)
    )
    drafts = tuple(
        Draft(PROMPTS.unwrapped(completion.text), place if step > 1 else 0, completion.truncated)
        for place, (completions, _) in enumerate(continued, 1)
        for completion in completions
    )
    lines = reference_lines(task.references[:step], papers[1:])
    ballot = await vote(client, config, papers[0].text, lines, [draft.text for draft in drafts], basis)
    cut = ballot.cut or any(was_cut for _, was_cut in continued)
    written = [completion for completions, _ in continued for completion in completions]
    cost = spent([*written, *ballot.completions])
    return BeamStep(number, drafts, ballot, best_choices(ballot.tallies, config.beam), cut, cost)


async def _continue(
    client: LlmClient,
    config: BeamConfig,
    values: Mapping[str, Any],
    target: str,
    draft: str,
    reference: str,
    place: int,
) -> tuple[list[Completion], bool]:
    """n_s continuations of one draft of the beam, and whether anything was cut.

    Samples are numbered on over the beam, so that two drafts with the same text have different continuations.
    """
    left = PROMPTS.room(config.context, config.draft.room, "draft", target="", draft="-", reference="", **values)
    # The draft goes before the key elements: what it loses is lost for good. It takes half of the room, or more.
    own = fit(draft, max(left // 2, left - count_tokens(target) - count_tokens(reference)))
    rest = left - count_tokens(own.text)
    about = fit(target, max(rest // 2, rest - count_tokens(reference)))
    added = fit(reference, rest - count_tokens(about.text))
    messages = PROMPTS.messages("draft", target=about.text, draft=own.text, reference=added.text, **values)
    completions = await client.samples(
        messages,
        config.samples,
        first=place * config.samples,
        temperature=config.temperature,
        max_tokens=config.draft.limit,
    )
    return completions, own.cut or about.cut or added.cut


# --- votes ----------------------------------------------------------------------------------------------------------


async def vote(
    client: LlmClient, config: BeamConfig, target: str, references: str, drafts: Sequence[str], basis: str
) -> Ballot:
    """n_v votes over the drafts; with n_v = 0 no call is made, and drafts rank in the order they were written.

    `references`: a line on each. `basis`: what the drafts were written from, in words ("key elements").
    """
    if not config.votes:
        return Ballot((), (0,) * len(drafts), (), False)
    messages, cut = _vote_messages(config, target, references, drafts, basis)
    completions = await client.samples(
        messages, config.votes, temperature=config.vote_temperature, max_tokens=config.vote.limit
    )
    votes = tuple(read_vote(completion.text, len(drafts)) for completion in completions)
    tallies = tuple(votes.count(choice) for choice in range(1, len(drafts) + 1))
    return Ballot(votes, tallies, tuple(completions), cut)


def _vote_messages(
    config: BeamConfig, target: str, references: str, drafts: Sequence[str], basis: str
) -> tuple[list[Message], bool]:
    values = {"basis": basis, "words": config.vote.words}
    empty = {"target": "", "references": "", "drafts": [""] * len(drafts)}
    left = PROMPTS.room(config.context, config.vote.room, "vote", **empty, **values)
    lines = count_tokens(references)
    # Two thirds of the room are the drafts' or more, in equal parts, so that none looks worse for being cut alone.
    most = max(left * 2 // 3, left - count_tokens(target) - lines)
    fitted = [fit(draft, most // len(drafts)) for draft in drafts]
    texts = [draft.text for draft in fitted]
    rest = left - sum(map(count_tokens, texts))
    # A sixth, where there is no more: a number that does not change, so that prompts go on beginning alike.
    about = fit(target, max(left // 6, rest - lines))
    listing = fit(references, rest - count_tokens(about.text))
    messages = PROMPTS.messages("vote", target=about.text, references=listing.text, drafts=texts, **values)
    return messages, any(part.cut for part in (about, listing, *fitted))


def best_choices(tallies: Sequence[int], count: int) -> tuple[int, ...]:
    """The choices with most votes, best first; of equals the one that was written first. Choices count from 1."""
    order = sorted(range(len(tallies)), key=lambda index: (-tallies[index], index))
    return tuple(index + 1 for index in order[:count])


def read_vote(text: str, choices: int) -> int | None:
    """The choice that a vote names, from 1 to `choices`; None where it names none of them.

    The last "The best choice is {s}" counts, also with "choice", "#", quotes or bold around s; else a last line that
    is a number alone.
    """
    verdicts = _VERDICT.findall(text)
    if not verdicts:
        lines = text.strip().splitlines()
        bare = _BARE_NUMBER.fullmatch(lines[-1]) if lines else None
        verdicts = [bare.group(1)] if bare else []
    choice = int(verdicts[-1]) if verdicts else 0
    return choice if 1 <= choice <= choices else None
