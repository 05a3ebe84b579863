"""`chatcite_grounded`, our own: ChatCite's beam search over sentences with their passages, which
loses no reference.

Key elements come with the passages that support them; references are grouped first, and searched in
that order; every sentence of a draft names its references and passages; after each step every
reference so far must still be cited and no other one; at the end sentences that their passages do
not support are revised.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from pipeline.llm.client import REPAIR_TOKENS, LlmClient, StructuredAnswer
from pipeline.llm.context import count_tokens, fit
from pipeline.llm.loop import side_by_side
from pipeline.llm.messages import LlmAnswerError, Message, Spent, spent
from pipeline.related_work.chatcite import (
    KEY_ELEMENTS,
    PaperContext,
    best_choices,
    draft_values,
    examples_trace,
    reference_lines,
    step_trace,
    vote,
)
from pipeline.related_work.evidence import Evidence, NamedPassage, find_evidence
from pipeline.related_work.grounded_draft import (
    JSON_FACTOR,
    Faults,
    TiedDraft,
    TiedSentence,
    draft_model,
    lines_of,
    missing_references,
    most_sentences,
    patch_draft,
    read_draft,
    section_text,
    sentence_chars,
)
from pipeline.related_work.key_elements import KeyElements
from pipeline.related_work.prompt_files import PROMPTS, draft_length
from pipeline.related_work.reference_groups import Grouping, group_references
from pipeline.related_work.summary import (
    Summary,
    SummarySentence,
    citation_counts,
    truncated_counts,
)
from pipeline.related_work.support_check import Revision, SupportCheck, check_support, revise
from pipeline.related_work.task import Reference, Task
from pipeline.settings import Settings
from pipeline.text import one_line

# The lost references take at most this part of a repair's prompt.
_LOST_SHARE = 3
_ONLY_TITLE = "{title} is a related work"


@dataclass(frozen=True, slots=True)
class _Step:
    """One reference's turn."""

    reference: Reference
    required: tuple[int, ...]
    """Numbers that a draft must cite after this step, in the order of the groups."""
    beam: tuple[tuple[TiedSentence, ...], ...]
    """The drafts that are continued."""

    def prompt_values(self, *, limited: bool) -> dict[str, Any]:
        """Values of every prompt that asks for a draft."""
        return {
            "cited": ", ".join(f"[Reference {number}]" for number in self.required),
            "most": most_sentences(len(self.required)) if limited else None,
            "example": f"R{self.reference.number}P1",
        }


@dataclass(frozen=True, slots=True)
class _Repair:
    """A draft after its repair, or without a fault. cut: whether the repair's prompt was cut."""

    draft: TiedDraft
    outcome: str
    cut: bool = False


@dataclass(frozen=True, slots=True)
class _Survivor:
    """A draft that is continued. outcome: kept, repaired, replaced (by another) or patched."""

    draft: TiedDraft
    choice: int
    outcome: str
    faults: Faults
    """Of the draft that was voted for."""
    made: tuple[int, ...] = ()
    """References whose sentence comes from their key elements."""
    cut: bool = False
    """Whether the prompt of its repair was cut."""

    def trace(self) -> dict[str, Any]:
        return {
            "choice": self.choice,
            "how": self.outcome,
            "made": list(self.made),
            "cut": self.cut,
            "failure": self.draft.failure,
            **self.faults.trace(),
        }


class _GroundedSearch:
    """The beam search over one task."""

    def __init__(
        self,
        client: LlmClient,
        task: Task,
        target: PaperContext,
        evidence: Sequence[Evidence],
        settings: Settings,
    ) -> None:
        self._client, self._task, self._settings, self._target = client, task, settings, target
        self._length = draft_length(settings, len(task.references), JSON_FACTOR)
        self._evidence = {item.reference.number: item for item in evidence}
        self._papers = {number: _paper_context(item) for number, item in self._evidence.items()}
        self._groups = ""
        self.passages: dict[str, NamedPassage] = {
            passage.name: passage for item in evidence for passage in item.passages
        }
        self.spent = sum((item.spent for item in evidence), Spent())
        self.rounds: list[dict[str, Any]] = []
        self.votes_truncated = 0

    def lines(self, numbers: Sequence[int]) -> str:
        """A line on each of these references."""
        references = [self._evidence[number].reference for number in numbers]
        return reference_lines(references, [self._papers[number] for number in numbers])

    async def run(self, grouping: Grouping) -> tuple[TiedSentence, ...]:
        """The best draft after the last reference of the last group."""
        self._groups = grouping.text()
        order = grouping.order()
        beam: tuple[tuple[TiedSentence, ...], ...] = ((),)
        for place, number in enumerate(order, 1):
            step = _Step(self._evidence[number].reference, tuple(order[:place]), beam)
            survivors = await self._take_step(step, [group.references for group in grouping.groups])
            beam = tuple(survivor.draft.sentences for survivor in survivors)
        return beam[0]

    async def _take_step(self, step: _Step, groups: Sequence[Sequence[int]]) -> list[_Survivor]:
        continued = await side_by_side(
            self._continue(step, place) for place in range(len(step.beam))
        )
        drafts = [draft for continuations, _ in continued for draft in continuations]
        parents = [
            place for place, (continuations, _) in enumerate(continued) for _ in continuations
        ]
        texts = [section_text(draft.sentences, groups) for draft in drafts]
        lines = self.lines(step.required)
        ballot = await vote(
            self._client, self._settings, self._target.text, lines, texts, KEY_ELEMENTS
        )
        self.spent += spent(ballot.completions)
        self.votes_truncated += ballot.truncated
        ranked = best_choices(ballot.tallies, len(drafts))
        survivors = await self._guard(step, drafts, [step.beam[place] for place in parents], ranked)
        cut = ballot.cut or any(was_cut for _, was_cut in continued)
        parent_choices = [place + 1 if len(step.required) > 1 else 0 for place in parents]
        beam = [survivor.choice for survivor in survivors]
        guard = [survivor.trace() for survivor in survivors]
        step_record = step_trace(step.reference.number, parent_choices, texts, ballot, beam, cut)
        self.rounds.append(step_record | {"guard": guard})
        return survivors

    async def _continue(self, step: _Step, place: int) -> tuple[list[TiedDraft], bool]:
        """n_s continuations of one draft, and whether anything was cut; the draft itself for what
        cannot be read.

        Samples are numbered on over the beam, as in ChatCite.
        """
        count, parent = self._settings.chatcite_samples, step.beam[place]
        messages, cut = self._draft_messages(step, parent)
        temperature = self._settings.temperature
        drafts = await self._ask(
            messages, step, parent, temperature, count=count, first=place * count
        )
        return drafts, cut

    def _draft_messages(
        self, step: _Step, parent: tuple[TiedSentence, ...]
    ) -> tuple[list[Message], bool]:
        number = step.reference.number
        values = draft_values(self._task, self._settings, self._length, KEY_ELEMENTS)
        values |= step.prompt_values(limited=self._limited)
        values |= {"number": number, "groups": self._groups}
        draft, added = lines_of(parent), self._context_of(number)
        answer = self._length.times(JSON_FACTOR).room + REPAIR_TOKENS
        room = PROMPTS.room(
            self._settings.llm_context, answer, "tied", target="", draft="-", reference="", **values
        )
        # The draft has half of the room at least, as in ChatCite.
        own = fit(
            draft, max(room // 2, room - count_tokens(self._target.text) - count_tokens(added))
        )
        rest = room - count_tokens(own.text)
        about = fit(self._target.text, max(rest // 3, rest - count_tokens(added)))
        about_reference = fit(added, rest - count_tokens(about.text))
        messages = PROMPTS.messages(
            "tied", target=about.text, draft=own.text, reference=about_reference.text, **values
        )
        return messages, own.cut or about.cut or about_reference.cut

    @property
    def _limited(self) -> bool:
        return self._length.limit is not None

    def _context_of(self, number: int) -> str:
        """A reference's key elements, then the passages that support them."""
        passages = "\n\n".join(passage.line() for passage in self._evidence[number].passages)
        return f"{self._papers[number].text}\n\n{passages}"

    async def _ask(
        self,
        messages: Sequence[Message],
        step: _Step,
        before: tuple[TiedSentence, ...],
        temperature: float,
        *,
        count: int = 1,
        first: int = 0,
    ) -> list[TiedDraft]:
        answers = await self._client.answers(
            messages,
            draft_model(len(step.required), sentence_chars(self._length)),
            count,
            max_tokens=self._length.times(JSON_FACTOR).limit,
            temperature=temperature,
            first=first,
        )
        self.spent += sum((answer.spent for answer in answers), Spent())
        return [self._read(answer, step, before) for answer in answers]

    def _read(
        self,
        answer: StructuredAnswer[BaseModel] | LlmAnswerError,
        step: _Step,
        before: tuple[TiedSentence, ...],
    ) -> TiedDraft:
        if isinstance(answer, LlmAnswerError):
            return TiedDraft(
                before, Faults(missing_references(before, step.required), ()), str(answer)
            )
        return read_draft(answer.value, step.required, self.passages)

    async def _guard(
        self,
        step: _Step,
        drafts: Sequence[TiedDraft],
        parents: Sequence[tuple[TiedSentence, ...]],
        ranked: Sequence[int],
    ) -> list[_Survivor]:
        """The n_c drafts that are continued, each citing every reference so far and no other, best
        first by votes.

        One that does not is repaired by one call; where that fails the next best draft without a
        fault takes its place; where there is none it is patched.
        """
        best = list(ranked[: self._settings.chatcite_kept])
        spare = list(ranked[self._settings.chatcite_kept :])
        repairs = await side_by_side(
            self._repair(step, drafts[choice - 1], parents[choice - 1]) for choice in best
        )
        survivors = []
        for choice, repair in zip(best, repairs, strict=True):
            faults = drafts[choice - 1].faults
            instead = next((other for other in spare if drafts[other - 1].faults.none), None)
            if repair.draft.faults.none:
                survivors.append(
                    _Survivor(repair.draft, choice, repair.outcome, faults, cut=repair.cut)
                )
            elif instead is not None:
                spare.remove(instead)
                survivors.append(
                    _Survivor(drafts[instead - 1], instead, "replaced", faults, cut=repair.cut)
                )
            else:
                plain = {
                    number: _plain_sentence(self._evidence[number]) for number in step.required
                }
                whole, made = patch_draft(repair.draft, parents[choice - 1], plain)
                survivors.append(
                    _Survivor(whole, choice, "patched", faults, tuple(made), repair.cut)
                )
        # The first is the section, in the end: one that took another's place has fewer votes than
        # those beside it.
        return sorted(survivors, key=lambda survivor: ranked.index(survivor.choice))

    async def _repair(
        self, step: _Step, draft: TiedDraft, before: tuple[TiedSentence, ...]
    ) -> _Repair:
        """The draft after one call that repairs it; without a fault as it is, without a call."""
        if draft.faults.none:
            return _Repair(draft, "kept")
        messages, cut = self._repair_messages(step, draft, before)
        (repaired,) = await self._ask(messages, step, draft.sentences, temperature=0.0)
        if repaired.failure is not None:  # nothing was repaired: the faults remain
            repaired = TiedDraft(draft.sentences, draft.faults, repaired.failure)
        return _Repair(repaired, "repaired", cut)

    def _repair_messages(
        self, step: _Step, draft: TiedDraft, before: Sequence[TiedSentence]
    ) -> tuple[list[Message], bool]:
        values = step.prompt_values(limited=self._limited)
        answer = self._length.times(JSON_FACTOR).room + REPAIR_TOKENS
        room = PROMPTS.room(
            self._settings.llm_context, answer, "repair", draft="", lost="-", **values
        )
        lost_texts = (self._lost_text(number, before) for number in draft.faults.missing)
        lost = fit("\n\n".join(lost_texts), room // _LOST_SHARE)
        own = fit(draft.lines(), room - count_tokens(lost.text))
        return (
            PROMPTS.messages("repair", draft=own.text, lost=lost.text, **values),
            own.cut or lost.cut,
        )

    def _lost_text(self, number: int, before: Sequence[TiedSentence]) -> str:
        """The sentences of the draft before on a lost reference, else its context."""
        sentences = [sentence for sentence in before if number in sentence.references]
        text = lines_of(sentences) if sentences else self._context_of(number)
        return f"[Reference {number}]\n{text}"


def _paper_context(evidence: Evidence) -> PaperContext:
    reference = evidence.reference
    text = (
        evidence.elements.text(reference.title)
        if reference.source != "item"
        else f"Title: {reference.title}"
    )
    return PaperContext.of(text, evidence.elements.gist())


def _plain_sentence(evidence: Evidence) -> TiedSentence:
    """A sentence on a reference made of its key elements."""
    reference = evidence.reference
    gist = evidence.elements.gist().rstrip(". ")
    text = f"{reference.title}: {gist}" if gist else _ONLY_TITLE.format(title=reference.title)
    first = tuple(passage.name for passage in evidence.passages[:1])
    return TiedSentence(f"{text} [Reference {reference.number}].", (reference.number,), first)


async def grounded(
    client: LlmClient, task: Task, elements: Sequence[KeyElements], settings: Settings
) -> Summary:
    """The section with the passages of each sentence. `elements`: the target's first; those of the
    references are extracted again, with passages.
    """
    count = len(task.references)
    evidence = await side_by_side(
        find_evidence(client, task, reference, settings) for reference in task.references
    )
    target = PaperContext.of(elements[0].text(task.title), elements[0].gist())
    search = _GroundedSearch(client, task, target, evidence, settings)
    lines = search.lines([reference.number for reference in task.references])
    grouping = await group_references(client, target.text, lines, count, settings)
    best = await search.run(grouping)
    check = await check_support(client, best, search.passages, settings)
    characters = sentence_chars(draft_length(settings, count, JSON_FACTOR))
    revision = await revise(
        client, best, check.unsupported(), search.passages, settings.llm_context, characters
    )
    trace = examples_trace(task, settings) | {"evidence": [item.trace() for item in evidence]}
    return _summary(task, search, grouping, best, check, revision, trace)


def _summary(
    task: Task,
    search: _GroundedSearch,
    grouping: Grouping,
    before: Sequence[TiedSentence],
    check: SupportCheck,
    revision: Revision,
    trace: dict[str, Any],
) -> Summary:
    text = section_text(revision.sentences, [group.references for group in grouping.groups])
    sentences = tuple(
        SummarySentence(
            sentence.text,
            sentence.references,
            tuple(search.passages[name].passage_id for name in sentence.passages),
            "revised" if place in revision.places else check.verdicts.get(place),
        )
        for place, sentence in enumerate(revision.sentences, 1)
    )
    changed = [{"sentence": place, "before": before[place - 1].text} for place in revision.places]
    trace |= {
        "groups": grouping.trace(),
        "passages": {
            name: {"passage_id": passage.passage_id, "text": one_line(passage.text)}
            for name, passage in search.passages.items()
        },
        "rounds": search.rounds,
        "support": check.trace(),
        "revision": {"sentences": changed, "cut": revision.cut, "failure": revision.failure},
        "citations": citation_counts(text, task.numbers, 0),
    }
    shortened = sum(len(item["shortened"]) for item in trace["evidence"])
    trace |= truncated_counts(key_elements=shortened, votes=search.votes_truncated)
    return Summary(
        text, sentences, trace, search.spent + grouping.spent + check.spent + revision.spent
    )
