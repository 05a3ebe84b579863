"""`chatcite_grounded`, our own: ChatCite's search over sentences that are tied to passages, and kept from losing any.

Key elements come with the passages that they rest on; references are grouped first, and searched in that order; every
sentence of a draft names its references and passages; after each step every reference so far must still be cited and
no other one; at the end sentences that their passages do not support are revised.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from pipeline.llm.client import REPAIR_TOKENS, Answer, LlmAnswerError, LlmClient, Spent, spent
from pipeline.llm.context import count_tokens, fit
from pipeline.llm.loop import side_by_side
from pipeline.related_work.chatcite import ELEMENTS, Known, Search, planned_calls, reference_lines
from pipeline.related_work.evidence import Evidence, Named, find_evidence
from pipeline.related_work.grouping import Grouping, group
from pipeline.related_work.key_elements import KeyElements
from pipeline.related_work.prompting import NOTHING, PROMPTS, Reference, Task, room
from pipeline.related_work.summary import Sentence, Summary, citation_counts
from pipeline.related_work.support import Judged, Revised, judge, revise
from pipeline.related_work.tied import (
    Faults,
    Tied,
    TiedDraft,
    answer_tokens,
    draft_model,
    missing,
    most_sentences,
    patched,
    read_draft,
    section,
    sentence_chars,
)
from pipeline.related_work.voting import Vote, vote

# Of the room in a prompt: the draft has half at least, as in ChatCite; a mended draft leaves a third to what it lost.
_LOST_SHARE = 3
_ONLY_TITLE = "{title} is a related work"


@dataclass(frozen=True, slots=True)
class _Step:
    """One reference's turn: what is given, and what it came to."""

    reference: Reference
    required: tuple[int, ...]
    """Numbers that a draft must cite after this step, in the order of the groups."""
    parents: tuple[tuple[Tied, ...], ...]


@dataclass(frozen=True, slots=True)
class _Kept:
    """One draft that goes on, and how: kept, repaired, replaced (by the next best), or patched."""

    draft: TiedDraft
    choice: int
    how: str
    found: Faults
    made: tuple[int, ...] = ()
    """References whose sentence was made of their key elements."""
    cut: bool = False
    """Whether the call that was to repair it was not shown everything."""

    def trace(self) -> dict[str, Any]:
        told = {"choice": self.choice, "how": self.how, "made": list(self.made), "cut": self.cut}
        return told | {"failure": self.draft.failure} | self.found.trace()


@dataclass(frozen=True, slots=True)
class _Mended:
    """A draft after its repair, or as it was where it had no fault."""

    draft: TiedDraft
    how: str
    cut: bool = False


class _Writer:
    """The search over one task."""

    def __init__(self, client: LlmClient, task: Task, target: Known, found: Sequence[Evidence], search: Search) -> None:
        self._client, self._task, self._search = client, task, search
        self._target = target
        self._evidence = {each.reference.number: each for each in found}
        self.passages: dict[str, Named] = {named.name: named for each in found for named in each.passages}
        self._known = {number: _known(each) for number, each in self._evidence.items()}
        self.spent = sum((each.spent for each in found), NOTHING)
        self.rounds: list[dict[str, Any]] = []
        self._groups = ""

    def lines(self, numbers: Sequence[int]) -> str:
        """A line on each of these references."""
        references = [self._evidence[number].reference for number in numbers]
        return reference_lines(references, [self._known[number] for number in numbers])

    async def search(self, grouping: Grouping) -> tuple[Tied, ...]:
        """The best draft after the last reference of the last group."""
        self._groups = grouping.text()
        order = grouping.order()
        parents: tuple[tuple[Tied, ...], ...] = ((),)
        for place, number in enumerate(order, 1):
            step = _Step(self._evidence[number].reference, tuple(order[:place]), parents)
            kept = await self._step(step, [group.references for group in grouping.groups])
            parents = tuple(each.draft.sentences for each in kept)
        return parents[0]

    async def _step(self, step: _Step, groups: Sequence[Sequence[int]]) -> list[_Kept]:
        continued = await side_by_side(self._continued(step, place) for place in range(len(step.parents)))
        drafts = [draft for found, _ in continued for draft in found]
        parents = [place for place, (found, _) in enumerate(continued) for _ in found]
        texts = [section(draft.sentences, groups) for draft in drafts]
        polled = await vote(
            self._client, self._search.evaluator(), self._target.text, self.lines(step.required), texts, ELEMENTS
        )
        self.spent += spent(polled.cast)
        kept = await self._guard(step, drafts, [step.parents[place] for place in parents], polled.ranked())
        parent = [place + 1 if len(step.required) > 1 else 0 for place in parents]
        self.rounds.append(_round(step, texts, parent, polled, kept, any(cut for _, cut in continued)))
        return kept

    async def _continued(self, step: _Step, place: int) -> tuple[list[TiedDraft], bool]:
        """n_s continuations of one kept draft, and whether anything was cut; the draft itself for what cannot be read.

        Samples are numbered on over the kept drafts, as in ChatCite.
        """
        count, parent = self._search.samples, step.parents[place]
        messages, cut = self._draft_messages(step, parent)
        temperature = self._search.temperature
        return await self._asked(messages, step, parent, temperature, count=count, first=place * count), cut

    def _draft_messages(self, step: _Step, parent: tuple[Tied, ...]) -> tuple[Any, bool]:
        search = self._search
        frame = (
            search.frame(self._task, ELEMENTS)
            | _cited(step)
            | {
                "number": step.reference.number,
                "groups": self._groups,
            }
        )
        draft = TiedDraft(parent, Faults((), ())).lines() if parent else ""
        added = self._told(step.reference.number)
        longest = answer_tokens(search.draft_tokens) + REPAIR_TOKENS
        left = room(search.context, longest, "tied", target="", draft="-", reference="", **frame)
        own = fit(draft, max(left // 2, left - count_tokens(self._target.text) - count_tokens(added)))
        rest = left - count_tokens(own.text)
        about = fit(self._target.text, max(rest // 3, rest - count_tokens(added)))
        shown = fit(added, rest - count_tokens(about.text))
        messages = PROMPTS.messages("tied", target=about.text, draft=own.text, reference=shown.text, **frame)
        return messages, own.cut or about.cut or shown.cut

    def _told(self, number: int) -> str:
        """What is known of a reference: its key elements, then the passages that they rest on."""
        passages = "\n\n".join(named.line() for named in self._evidence[number].passages)
        return f"{self._known[number].text}\n\n{passages}"

    async def _asked(
        self,
        messages: Any,
        step: _Step,
        before: tuple[Tied, ...],
        temperature: float,
        *,
        count: int = 1,
        first: int = 0,
    ) -> list[TiedDraft]:
        tokens = self._search.draft_tokens
        found = await self._client.answers(
            messages,
            draft_model(len(step.required), sentence_chars(tokens)),
            count,
            max_tokens=answer_tokens(tokens),
            temperature=temperature,
            first=first,
        )
        self.spent += sum((each.spent for each in found), NOTHING)
        return [self._read(each, step, before) for each in found]

    def _read(self, given: Answer[BaseModel] | LlmAnswerError, step: _Step, before: tuple[Tied, ...]) -> TiedDraft:
        if isinstance(given, LlmAnswerError):
            return TiedDraft(before, Faults(missing(before, step.required), ()), str(given))
        return read_draft(given.value, step.required, self.passages)

    async def _guard(
        self, step: _Step, drafts: Sequence[TiedDraft], parents: Sequence[tuple[Tied, ...]], ranked: Sequence[int]
    ) -> list[_Kept]:
        """The n_c drafts that go on, each citing every reference so far and no other, best first by their votes.

        One that does not is repaired by one call; where that fails the next best draft without a fault takes its
        place; where there is none it is patched.
        """
        best, spare = list(ranked[: self._search.kept]), list(ranked[self._search.kept :])
        mended = await side_by_side(self._mended(step, drafts[choice - 1], parents[choice - 1]) for choice in best)
        kept = []
        for choice, done in zip(best, mended, strict=True):
            found = drafts[choice - 1].faults
            instead = next((other for other in spare if drafts[other - 1].faults.none), None)
            if done.draft.faults.none:
                kept.append(_Kept(done.draft, choice, done.how, found, cut=done.cut))
            elif instead is not None:
                spare.remove(instead)
                kept.append(_Kept(drafts[instead - 1], instead, "replaced", found, cut=done.cut))
            else:
                whole, made = patched(done.draft, parents[choice - 1], self._made(step))
                kept.append(_Kept(whole, choice, "patched", found, tuple(made), done.cut))
        # The first is the section, in the end: one that took another's place has fewer votes than those beside it.
        return sorted(kept, key=lambda each: ranked.index(each.choice))

    async def _mended(self, step: _Step, draft: TiedDraft, before: tuple[Tied, ...]) -> _Mended:
        """The draft, and whether it was kept or repaired; asks only where it has a fault."""
        if draft.faults.none:
            return _Mended(draft, "kept")
        messages, cut = self._mend_messages(step, draft, before)
        (repaired,) = await self._asked(messages, step, draft.sentences, temperature=0.0)
        if repaired.failure is not None:  # nothing was repaired: what was wrong still is
            repaired = TiedDraft(draft.sentences, draft.faults, repaired.failure)
        return _Mended(repaired, "repaired", cut)

    def _mend_messages(self, step: _Step, draft: TiedDraft, before: Sequence[Tied]) -> tuple[Any, bool]:
        search = self._search
        frame = _cited(step)
        longest = answer_tokens(search.draft_tokens) + REPAIR_TOKENS
        left = room(search.context, longest, "mend", draft="", lost="-", **frame)
        lost = fit("\n\n".join(self._lost(number, before) for number in draft.faults.missing), left // _LOST_SHARE)
        own = fit(draft.lines(), left - count_tokens(lost.text))
        return PROMPTS.messages("mend", draft=own.text, lost=lost.text, **frame), own.cut or lost.cut

    def _lost(self, number: int, before: Sequence[Tied]) -> str:
        """What was said of a reference that a draft lost, else what is known of it."""
        said = [sentence for sentence in before if number in sentence.references]
        told = TiedDraft(tuple(said), Faults((), ())).lines() if said else self._told(number)
        return f"[Reference {number}]\n{told}"

    def _made(self, step: _Step) -> Mapping[int, Tied]:
        """A plain sentence on each reference so far, of its key elements."""
        return {number: _plain(self._evidence[number]) for number in step.required}


def _cited(step: _Step) -> dict[str, Any]:
    return {
        "cited": ", ".join(f"[Reference {number}]" for number in step.required),
        "most": most_sentences(len(step.required)),
        "example": f"R{step.reference.number}P1",
    }


def _known(evidence: Evidence) -> Known:
    reference = evidence.reference
    said = evidence.elements.text(reference.title) if reference.source != "item" else f"Title: {reference.title}"
    return Known.of(said, evidence.elements.gist())


def _plain(evidence: Evidence) -> Tied:
    reference = evidence.reference
    gist = evidence.elements.gist().rstrip(". ")
    told = f"{reference.title}: {gist}" if gist else _ONLY_TITLE.format(title=reference.title)
    first = tuple(named.name for named in evidence.passages[:1])
    return Tied(f"{told} [Reference {reference.number}].", (reference.number,), first)


def _round(
    step: _Step, texts: Sequence[str], parents: Sequence[int], polled: Vote, kept: Sequence[_Kept], cut: bool
) -> dict[str, Any]:
    """A round as the other systems' traces have it, and what the guard did."""
    drafts = [{"choice": n, "parent": p, "text": t} for n, (p, t) in enumerate(zip(parents, texts, strict=True), 1)]
    return {
        "reference": step.reference.number,
        "drafts": drafts,
        "votes": list(polled.votes),
        "abstentions": polled.votes.count(None),
        "tallies": list(polled.tallies),
        "kept": [each.choice for each in kept],
        "cut": cut or polled.cut,
        "guard": [each.trace() for each in kept],
    }


async def grounded(
    client: LlmClient, task: Task, elements: Sequence[KeyElements], search: Search, element_tokens: int
) -> Summary:
    """The section, its sentences tied to passages. `elements`: the target's first; the references' are asked anew."""
    search = search.sized(len(task.references), answer_tokens(1))
    found = await side_by_side(
        find_evidence(client, task, place, context=search.context, element_tokens=element_tokens)
        for place in range(len(task.references))
    )
    target = Known.of(elements[0].text(task.title), elements[0].gist())
    writer = _Writer(client, task, target, found, search)
    numbers = [reference.number for reference in task.references]
    grouping = await group(client, target.text, writer.lines(numbers), len(numbers), search.context)
    best = await writer.search(grouping)
    judged = await judge(client, best, writer.passages, search.context)
    revised = await revise(
        client,
        best,
        judged.faulty(),
        writer.passages,
        context=search.context,
        characters=sentence_chars(search.draft_tokens),
    )
    cost = writer.spent + grouping.spent + judged.spent + revised.spent
    told = search.shown(task) | {"evidence": [each.trace() for each in found]}
    return _summary(task, writer, grouping, best, judged, revised, told, cost)


def _summary(
    task: Task,
    writer: _Writer,
    grouping: Grouping,
    before: Sequence[Tied],
    judged: Judged,
    revised: Revised,
    told: dict[str, Any],
    cost: Spent,
) -> Summary:
    text = section(revised.sentences, [group.references for group in grouping.groups])
    sentences = tuple(
        Sentence(
            each.text,
            each.references,
            tuple(writer.passages[name].passage.passage_id for name in each.passages),
            "revised" if place in revised.places else judged.verdicts.get(place),
        )
        for place, each in enumerate(revised.sentences, 1)
    )
    changed = [{"sentence": place, "before": before[place - 1].text} for place in revised.places]
    trace = told | {
        "groups": grouping.trace(),
        "passages": {name: _shown(named) for name, named in writer.passages.items()},
        "rounds": writer.rounds,
        "support": judged.trace(),
        "revision": {"sentences": changed, "cut": revised.cut, "failure": revised.failure},
        "citations": citation_counts(text, task.numbers, 0),
    }
    return Summary(text, sentences, trace, cost)


def _shown(named: Named) -> dict[str, str]:
    return {"passage_id": named.passage.passage_id, "text": " ".join(named.passage.text.split())}


def planned_grounded(references: int, search: Search) -> int:
    """Calls where nothing has to be repaired: one for each reference's evidence, one for the groups, the search, and
    one that judges. One reference alone is not grouped."""
    return references + (references > 1) + planned_calls(references, search) + 1
