"""ChatCite's reflective incremental generator, Algorithm 1 of arXiv 2403.02574, and two of its
ablations (section 5.3).

Breadth-first over the references in order: every draft of the beam is continued n_s times, the
reflective evaluator votes n_v times over all continuations, and the n_c with most votes are the
next beam. The third ablation, without incremental steps, is a baseline with guidance:
`pipeline.related_work.baselines`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pipeline.llm.client import LlmClient
from pipeline.llm.context import count_tokens, fit
from pipeline.llm.loop import side_by_side
from pipeline.llm.messages import Completion, spent
from pipeline.related_work.baselines import summarize
from pipeline.related_work.key_elements import KeyElements
from pipeline.related_work.prompt_files import (
    PROMPTS,
    AnswerLength,
    answer_length,
    draft_length,
    style_examples,
    unnumbered,
)
from pipeline.related_work.summary import Summary, make_summary, split_sentences
from pipeline.related_work.system import WRITING, RelatedWorkSystem
from pipeline.related_work.task import Task
from pipeline.settings import Settings

# What a prompt says of a work of which only this is known: a model would otherwise add what it
# believes to know.
_SOURCE_NOTES = {
    "abstract": "Only the abstract of this work is known.",
    "item": (
        "Only the bibliography item of this work is known: say no more of it than its title does."
    ),
}
_VERDICT = re.compile(
    r"best\s+(?:choice|draft|option)\s*(?:is|:)\W*(?:the\s+)?(?:(?:choice|draft|option|number|no\.?)\W*)?"
    r"([0-9]{1,4})(?!\.?[0-9])",
    re.IGNORECASE,
)
_BARE_NUMBER = re.compile(r"\W*(?:choice\W*)?([0-9]{1,4})\W*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PaperContext:
    """One paper in prompts: `text` for the writer, `gist`, one line, for the evaluator."""

    text: str
    gist: str

    @classmethod
    def of(cls, text: str, gist: str) -> PaperContext:
        """From the text of a paper or model: nothing in it can pass for the head of another
        reference.
        """
        return cls(unnumbered(text), unnumbered(gist))


@dataclass(frozen=True, slots=True)
class Ballot:
    """The votes over some drafts, which are numbered from 1."""

    votes: tuple[int | None, ...]
    """The choice of each vote; None for an abstention: no number could be read, or none that is a
    choice.
    """
    tallies: tuple[int, ...]
    completions: tuple[Completion, ...]
    cut: bool
    """Whether anything was cut to fit the context."""


async def chatcite(
    client: LlmClient, task: Task, elements: Sequence[KeyElements], settings: Settings
) -> Summary:
    """The best draft after the last reference. `elements`: the target's, then each reference's, in
    order.
    """
    return await beam_search(client, task, element_contexts(task, elements), settings)


async def without_elements(
    client: LlmClient, task: Task, elements: Sequence[KeyElements], settings: Settings
) -> Summary:
    """The search over summaries by the baseline's prompt p_s, in place of the seven answers."""
    length = draft_length(settings, 0)
    summaries = await side_by_side(summarize(client, settings, text, length) for text in task.texts)
    titles = (task.title, *(reference.title for reference in task.references))
    completions = [summary for summary, _ in summaries]
    papers = []
    for title, completion in zip(titles, completions, strict=True):
        summary = PROMPTS.unwrapped(completion.text)
        # The first sentence, for the evaluator, is about as long as a key element.
        gist = next(iter(split_sentences(summary)), "")
        papers.append(PaperContext.of(f"Title: {title}\n{summary}", gist))
    section = await beam_search(client, task, papers, settings, "summary", completions)
    trace = {
        "summaries": [completion.text for completion in completions],
        "contents_cut": [number for number, (_, cut) in enumerate(summaries) if cut],
    }
    return replace(section, trace=dict(section.trace) | trace)


async def without_reflection(
    client: LlmClient, task: Task, elements: Sequence[KeyElements], settings: Settings
) -> Summary:
    """The search without an evaluator: one draft for every reference, each continuing the one
    before.

    Of several drafts without votes all but one would be thrown away.
    """
    one = {"chatcite_samples": 1, "chatcite_votes": 0, "chatcite_kept": 1}
    return await chatcite(client, task, elements, settings.model_copy(update=one))


_GUIDED = (*WRITING, "chatcite_examples")
_SEARCH = (*_GUIDED, "chatcite_samples", "chatcite_votes", "chatcite_kept", "vote_temperature")
CHATCITE = RelatedWorkSystem(
    name="chatcite",
    write=chatcite,
    settings=_SEARCH,
    prompts=("draft", "vote"),
    reads_elements=True,
    examples="chatcite_examples",
    reads_texts=False,
)
WITHOUT_ELEMENTS = RelatedWorkSystem(
    name="chatcite_no_elements",
    write=without_elements,
    settings=_SEARCH,
    prompts=("summarize", "draft", "vote"),
    examples="chatcite_examples",
)
WITHOUT_REFLECTION = replace(
    CHATCITE,
    name="chatcite_no_reflection",
    write=without_reflection,
    settings=_GUIDED,
    prompts=("draft",),
)

# --- papers in prompts ---


def element_contexts(task: Task, elements: Sequence[KeyElements]) -> list[PaperContext]:
    """The key elements of the target and of each reference, in order, as prompts have them."""
    target, *others = elements
    papers = [PaperContext.of(target.text(task.title), target.gist())]
    for reference, known in zip(task.references, others, strict=True):
        text, gist = known.text(reference.title), known.gist()
        note = _SOURCE_NOTES.get(reference.source)
        if note is not None:
            head = f"Title: {reference.title}" if reference.source == "item" else text
            text, gist = f"{head}\n{note}", gist or note
        papers.append(PaperContext.of(text, gist))
    return papers


# --- the search ---


async def beam_search(
    client: LlmClient,
    task: Task,
    papers: Sequence[PaperContext],
    settings: Settings,
    basis: str = "key elements",
    summaries: Sequence[Completion] = (),
) -> Summary:
    """Algorithm 1 over the target and its references, in order: n_s is CITELOOM_CHATCITE_SAMPLES,
    n_v …_VOTES and n_c …_KEPT. The paper gives none of them but n_c·n_s = 6, in Figure 2: the
    defaults are ours.

    papers: of the target, then of each reference. basis: the kind of their texts, in words; summary
    in the ablation without key elements.
    summaries: completions of the calls made before, to be counted.
    """
    length = draft_length(settings, len(task.references))
    examples = style_examples(task, settings.chatcite_examples, settings)
    values: dict[str, Any] = {"examples": examples, "basis": basis, "words": length.words}
    target, *others = papers
    beam, is_cut = [""], False
    rounds: list[dict[str, Any]] = []
    draft_completions: list[Completion] = []
    vote_completions: list[Completion] = []
    for step, reference in enumerate(task.references, 1):
        values["number"] = reference.number
        continued = await side_by_side(
            _continue(client, settings, length, values, target, draft, others[step - 1], place)
            for place, draft in enumerate(beam)
        )
        completions = [completion for samples, _ in continued for completion in samples]
        drafts = [PROMPTS.unwrapped(completion.text) for completion in completions]
        parents = [
            place if step > 1 else 0
            for place, (samples, _) in enumerate(continued, 1)
            for _ in samples
        ]
        # A line each, for the evaluator: the list grows with |R|.
        lines = "\n".join(
            f"[Reference {known.number}] {unnumbered(known.title)}. {paper.gist}".strip()
            for known, paper in zip(task.references[:step], others[:step], strict=True)
        )
        ballot = await _vote(client, settings, target.text, lines, drafts, basis)
        best = best_choices(ballot.tallies, settings.chatcite_kept)
        cut = ballot.cut or any(was_cut for _, was_cut in continued)
        # Choices are numbered from 1, as the evaluator sees them; parent 0 is the empty draft.
        rounds.append(
            {
                "reference": reference.number,
                "drafts": [
                    {"choice": choice, "parent": parent, "text": text}
                    for choice, (parent, text) in enumerate(zip(parents, drafts, strict=True), 1)
                ],
                "votes": list(ballot.votes),
                "abstentions": ballot.votes.count(None),
                "tallies": list(ballot.tallies),
                "kept": list(best),
                "cut": cut,
            }
        )
        is_cut = completions[best[0] - 1].truncated
        beam = [drafts[choice - 1] for choice in best]
        draft_completions += completions
        vote_completions += ballot.completions
    trace: dict[str, Any] = {"rounds": rounds}
    if settings.chatcite_examples:
        trace["examples"] = examples
    cost = spent([*summaries, *draft_completions, *vote_completions])
    return make_summary(beam[0], task.numbers, trace, cost, is_cut=is_cut)


async def _continue(
    client: LlmClient,
    settings: Settings,
    length: AnswerLength,
    values: Mapping[str, Any],
    target: PaperContext,
    draft: str,
    reference: PaperContext,
    place: int,
) -> tuple[list[Completion], bool]:
    """n_s continuations of one draft of the beam, and whether anything was cut.

    Samples are numbered on over the beam, so that two drafts with the same text have different
    continuations.
    """
    room = PROMPTS.room(
        settings.llm_context, length.room, "draft", target="", draft="-", reference="", **values
    )
    # The draft goes before the key elements: what it loses is lost for good. It takes half of the
    # room, or more.
    own = fit(
        draft, max(room // 2, room - count_tokens(target.text) - count_tokens(reference.text))
    )
    rest = room - count_tokens(own.text)
    about = fit(target.text, max(rest // 2, rest - count_tokens(reference.text)))
    added = fit(reference.text, rest - count_tokens(about.text))
    messages = PROMPTS.messages(
        "draft", target=about.text, draft=own.text, reference=added.text, **values
    )
    completions = await client.samples(
        messages,
        settings.chatcite_samples,
        first=place * settings.chatcite_samples,
        temperature=settings.temperature,
        max_tokens=length.limit,
    )
    return completions, own.cut or about.cut or added.cut


# --- votes ---


async def _vote(
    client: LlmClient,
    settings: Settings,
    target: str,
    references: str,
    drafts: Sequence[str],
    basis: str,
) -> Ballot:
    """n_v votes over the drafts; with n_v = 0 no call is made, and drafts rank in the order they
    were written.

    `references`: a line on each. `basis`: what the drafts were written from, in words ("key
    elements").
    """
    if not settings.chatcite_votes:
        return Ballot((), (0,) * len(drafts), (), False)
    tokens = vote_tokens(settings)
    length = answer_length(tokens, settings.llm_context)
    values = {"basis": basis, "words": length.words}
    empty = {"target": "", "references": "", "drafts": [""] * len(drafts)}
    room = PROMPTS.room(settings.llm_context, length.room, "vote", **empty, **values)
    lines = count_tokens(references)
    # Two thirds of the room are the drafts' or more, in equal parts, so that none looks worse for
    # being cut alone.
    most = max(room * 2 // 3, room - count_tokens(target) - lines)
    fitted = [fit(draft, most // len(drafts)) for draft in drafts]
    texts = [draft.text for draft in fitted]
    rest = room - sum(map(count_tokens, texts))
    # A sixth, where there is no more: a number that does not change, so that prompts go on
    # beginning alike.
    about = fit(target, max(room // 6, rest - lines))
    listing = fit(references, rest - count_tokens(about.text))
    messages = PROMPTS.messages(
        "vote", target=about.text, references=listing.text, drafts=texts, **values
    )
    completions = await client.samples(
        messages,
        settings.chatcite_votes,
        temperature=settings.vote_temperature,
        max_tokens=tokens,
    )
    votes = tuple(read_vote(completion.text, len(drafts)) for completion in completions)
    tallies = tuple(votes.count(choice) for choice in range(1, len(drafts) + 1))
    is_cut = any(part.cut for part in (about, listing, *fitted))
    return Ballot(votes, tallies, tuple(completions), is_cut)


def vote_tokens(settings: Settings) -> int | None:
    """Longest vote, in tokens: a reason and a choice, half as long as a draft; None for no
    limit.
    """
    return max(16, settings.draft_tokens // 2) if settings.draft_tokens else None


def best_choices(tallies: Sequence[int], count: int) -> tuple[int, ...]:
    """The choices with most votes, best first; of equals the one that was written first. Choices
    count from 1.
    """
    order = sorted(range(len(tallies)), key=lambda index: (-tallies[index], index))
    return tuple(index + 1 for index in order[:count])


def read_vote(text: str, choices: int) -> int | None:
    """The choice that a vote names, from 1 to `choices`; None where it names none of them.

    The last "The best choice is {s}" counts, also with "choice", "#", quotes or bold around s; else
    a last line that is a number alone.
    """
    verdicts = _VERDICT.findall(text)
    if not verdicts:
        lines = text.strip().splitlines()
        bare = _BARE_NUMBER.fullmatch(lines[-1]) if lines else None
        verdicts = [bare.group(1)] if bare else []
    choice = int(verdicts[-1]) if verdicts else 0
    return choice if 1 <= choice <= choices else None
