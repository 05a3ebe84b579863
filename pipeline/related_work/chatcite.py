"""ChatCite's reflective incremental generator, Algorithm 1 of arXiv 2403.02574.

Breadth-first over the references in order: every kept draft is continued n_s times, the reflective evaluator votes
n_v times over all continuations, and the n_c with most votes are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pipeline.llm.client import Completion, LlmClient, Spent, spent
from pipeline.llm.context import count_tokens, fit
from pipeline.llm.loop import side_by_side
from pipeline.related_work.key_elements import KeyElements
from pipeline.related_work.prompting import (
    NOTHING,
    PROMPTS,
    Reference,
    Task,
    longest_draft,
    room,
    styles,
    unnumbered,
    words_of,
)
from pipeline.related_work.summary import Summary, make_summary
from pipeline.related_work.voting import Evaluator, best_choices, vote

ELEMENTS = "key elements"
"""What drafts are written from in the method as it is; the ablation without key elements has summaries."""


# Of a work of which there is little, what a writer must know: else a model tells what it believes to know of it.
_KNOWN_BY = {
    "abstract": "Only the abstract of this work is known.",
    "item": "Only the bibliography item of this work is known: say no more of it than its title tells.",
}


@dataclass(frozen=True, slots=True)
class Search:
    """The algorithm's parameters. The paper gives none of them but n_c·n_s = 6, in Figure 2: the defaults are ours."""

    samples: int
    """n_s: continuations of every kept draft."""
    votes: int
    """n_v: votes per reference; 0 for none, the drafts then ranking in the order they were written."""
    kept: int
    """n_c: drafts kept per reference."""
    temperature: float
    draft_tokens: int
    """Longest draft; see `sized`."""
    vote_tokens: int
    context: int
    vote_temperature: float = 0.7
    examples: int = 0
    """How many of a task's examples are shown with every draft."""

    def sized(self, references: int, factor: int = 1) -> Search:
        """With drafts that are long enough for so many references; `factor` as in `longest_draft`."""
        return replace(self, draft_tokens=longest_draft(self.draft_tokens, references, self.context, factor))

    def evaluator(self) -> Evaluator:
        return Evaluator(self.votes, self.vote_tokens, self.vote_temperature, self.context)

    def frame(self, task: Task, basis: str) -> dict[str, Any]:
        """What every prompt for drafts of this task begins with."""
        words = words_of(self.draft_tokens)
        return {"examples": self._styles(task), "basis": basis, "words": words}

    def shown(self, task: Task) -> dict[str, Any]:
        """What a trace says of the examples shown; nothing where there were none."""
        return {"examples": self._styles(task)} if self.examples else {}

    def _styles(self, task: Task) -> list[str]:
        return styles(task, self.examples, self.context)


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of one paper: `text` for whoever writes, `gist`, one line, for whoever votes."""

    text: str
    gist: str

    @classmethod
    def of(cls, text: str, gist: str) -> Known:
        """From what a paper, or a model that read it, has written: it cannot pass for another reference's."""
        return cls(unnumbered(text), unnumbered(gist))


@dataclass(frozen=True, slots=True)
class Draft:
    """One draft: `parent` is the position among the drafts kept before, from 1; 0 for the empty draft.

    truncated: whether the longest draft allowed was too short for it.
    """

    text: str
    parent: int
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class Round:
    """What happened for one reference, or for all at once. Choices count from 1, as the evaluator sees them."""

    reference: int
    drafts: tuple[Draft, ...]
    votes: tuple[int | None, ...]
    """The choice of each vote; None for an abstention."""
    tallies: tuple[int, ...]
    kept: tuple[int, ...]
    cut: bool
    """Whether anything was cut to fit the context."""
    spent: Spent

    def survivors(self) -> list[Draft]:
        return [self.drafts[choice - 1] for choice in self.kept]

    def trace(self) -> dict[str, Any]:
        return {
            "reference": self.reference,
            "drafts": [{"choice": i, "parent": d.parent, "text": d.text} for i, d in enumerate(self.drafts, 1)],
            "votes": list(self.votes),
            "abstentions": self.votes.count(None),
            "tallies": list(self.tallies),
            "kept": list(self.kept),
            "cut": self.cut,
            "truncated": [choice for choice, draft in enumerate(self.drafts, 1) if draft.truncated],
        }


async def chatcite(client: LlmClient, task: Task, elements: Sequence[KeyElements], search: Search) -> Summary:
    """The best draft after the last reference. `elements`: the target's, then each reference's, in order."""
    return await incremental(client, task, known_by_elements(task, elements), search)


def known_by_elements(task: Task, elements: Sequence[KeyElements]) -> list[Known]:
    """What the key elements say of the target and of each reference, in order."""
    target, *others = elements
    cited = [_known(reference, each) for reference, each in zip(task.references, others, strict=True)]
    return [Known.of(target.text(task.title), target.gist()), *cited]


def _known(reference: Reference, elements: KeyElements) -> Known:
    told = _KNOWN_BY.get(reference.source)
    if told is None:
        return Known.of(elements.text(reference.title), elements.gist())
    said = f"Title: {reference.title}" if reference.source == "item" else elements.text(reference.title)
    return Known.of(f"{said}\n{told}", elements.gist() or told)


async def incremental(
    client: LlmClient,
    task: Task,
    known: Sequence[Known],
    search: Search,
    basis: str = ELEMENTS,
    before: Spent = NOTHING,
) -> Summary:
    """Algorithm 1 over what is known of the target and of each reference, in order. `before`: spent on knowing it."""
    search = search.sized(len(task.references))
    kept = [Draft("", 0)]
    rounds: list[Round] = []
    for step in range(1, len(task.references) + 1):
        done = await _round(client, search, task, known[: step + 1], kept, basis)
        rounds.append(done)
        kept = done.survivors()
    cost = sum((done.spent for done in rounds), before)
    trace = search.shown(task) | {"rounds": [done.trace() for done in rounds]}
    return make_summary(kept[0].text, task.numbers, trace, cost)


def planned_calls(references: int, search: Search) -> int:
    """Calls that a target takes, its (|R|+1) key-element extractions not counted.

    |R|·(n_c·n_s + n_v) less (n_c − 1)·n_s at the first step, where there is one draft to continue; less still in the
    next steps where n_s < n_c, as fewer drafts than n_c exist.
    """
    calls, kept = 0, 1
    for _ in range(references):
        drafts = kept * search.samples
        calls += drafts + search.votes
        kept = min(search.kept, drafts)
    return calls


async def _round(
    client: LlmClient, search: Search, task: Task, known: Sequence[Known], kept: Sequence[Draft], basis: str
) -> Round:
    """One reference: the last of `known`, whose first is the target, those between being in the drafts already."""
    step = len(known) - 1
    number = task.references[step - 1].number
    frame = search.frame(task, basis) | {"number": number}
    continued = await side_by_side(
        _continue(client, search, frame, known[0].text, draft.text, known[-1].text, place)
        for place, draft in enumerate(kept)
    )
    written = [(place + 1, each) for place, (found, _) in enumerate(continued) for each in found]
    drafts = tuple(
        Draft(PROMPTS.unwrapped(each.text), place if step > 1 else 0, each.truncated) for place, each in written
    )
    lines = reference_lines(task.references[:step], known[1:])
    polled = await vote(client, search.evaluator(), known[0].text, lines, [draft.text for draft in drafts], basis)
    cut = polled.cut or any(was_cut for _, was_cut in continued)
    cost = spent([each for _, each in written]) + spent(polled.cast)
    return Round(number, drafts, polled.votes, polled.tallies, best_choices(polled.tallies, search.kept), cut, cost)


async def _continue(
    client: LlmClient, search: Search, frame: dict[str, Any], target: str, draft: str, reference: str, place: int
) -> tuple[list[Completion], bool]:
    """n_s continuations of one kept draft, and whether anything was cut.

    Samples are numbered on over the kept drafts, so that two of them with the same text are not continued alike.
    """
    left = room(search.context, search.draft_tokens, "draft", target="", draft="-", reference="", **frame)
    # The draft goes before the key elements: what it loses is lost for good. It takes half of the room, or more.
    own = fit(draft, max(left // 2, left - count_tokens(target) - count_tokens(reference)))
    rest = left - count_tokens(own.text)
    about = fit(target, max(rest // 2, rest - count_tokens(reference)))
    added = fit(reference, rest - count_tokens(about.text))
    messages = PROMPTS.messages("draft", target=about.text, draft=own.text, reference=added.text, **frame)
    found = await client.samples(
        messages,
        search.samples,
        first=place * search.samples,
        temperature=search.temperature,
        max_tokens=search.draft_tokens,
    )
    return found, own.cut or about.cut or added.cut


def reference_lines(references: Sequence[Reference], known: Sequence[Known]) -> str:
    """Each reference in one line: what the evaluator checks drafts against, short since it grows with |R|."""
    return "\n".join(
        f"[Reference {reference.number}] {unnumbered(reference.title)}. {each.gist}".strip()
        for reference, each in zip(references, known, strict=True)
    )
