"""ChatCite's reflective incremental generator, Algorithm 1 of arXiv 2403.02574.

Breadth-first over the references in order: every kept draft is continued n_s times, the reflective evaluator votes
n_v times over all continuations, and the n_c with most votes are kept. Not here: key elements, which it is given.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.llm.client import Completion, LlmClient, Spent, spent
from pipeline.llm.context import count_tokens, fit
from pipeline.llm.loop import side_by_side
from pipeline.llm.messages import Message
from pipeline.related_work.key_elements import KeyElements
from pipeline.related_work.prompting import PROMPTS, Reference, Task, room
from pipeline.related_work.summary import Summary, make_summary

_VERDICT = re.compile(
    r"best\s+(?:choice|draft)\s*(?:is|:)\W*(?:(?:choice|draft|number|no\.?)\W*)?([0-9]{1,4})(?!\.?[0-9])", re.IGNORECASE
)
_BARE_NUMBER = re.compile(r"\W*(?:choice\W*)?([0-9]{1,4})\W*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Search:
    """The algorithm's parameters. The paper gives none of them but n_c·n_s = 6, in Figure 2: the defaults are ours."""

    samples: int
    """n_s: continuations of every kept draft."""
    votes: int
    """n_v: votes per reference."""
    kept: int
    """n_c: drafts kept per reference."""
    temperature: float
    draft_tokens: int
    vote_tokens: int
    context: int


@dataclass(frozen=True, slots=True)
class Draft:
    """One draft: `parent` is the position among the drafts kept before, from 1; 0 for the empty draft."""

    text: str
    parent: int


@dataclass(frozen=True, slots=True)
class Round:
    """What happened for one reference. Choices count from 1, as the evaluator sees them."""

    reference: int
    drafts: tuple[Draft, ...]
    votes: tuple[int | None, ...]
    """The choice of each vote; None for an abstention: no number could be read, or none that is a choice."""
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
        }


async def chatcite(client: LlmClient, task: Task, elements: Sequence[KeyElements], search: Search) -> Summary:
    """The best draft after the last reference. `elements`: the target's, then each reference's, in order."""
    target = elements[0].text(task.title)
    kept = [Draft("", 0)]
    rounds: list[Round] = []
    for step in range(1, len(task.references) + 1):
        done = await _round(client, search, target, task.references[:step], elements[1 : step + 1], kept)
        rounds.append(done)
        kept = done.survivors()
    cost = sum((done.spent for done in rounds), Spent())
    trace = {"rounds": [done.trace() for done in rounds]}
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
    client: LlmClient,
    search: Search,
    target: str,
    references: Sequence[Reference],
    elements: Sequence[KeyElements],
    kept: Sequence[Draft],
) -> Round:
    """One reference: the last of `references`, those before it being in the drafts already."""
    newest = references[-1]
    added = elements[-1].text(newest.title)
    continued = await side_by_side(
        _continue(client, search, target, draft.text, newest.number, added, place) for place, draft in enumerate(kept)
    )
    written = [(place + 1, each) for place, (found, _) in enumerate(continued) for each in found]
    drafts = tuple(Draft(each.text.strip(), place if len(references) > 1 else 0) for place, each in written)
    known = _reference_lines(references, elements)
    votes, cast, vote_cut = await _vote(client, search, target, known, [draft.text for draft in drafts])
    tallies = tuple(votes.count(choice) for choice in range(1, len(drafts) + 1))
    cut = vote_cut or any(was_cut for _, was_cut in continued)
    cost = spent([each for _, each in written]) + spent(cast)
    return Round(newest.number, drafts, votes, tallies, best_choices(tallies, search.kept), cut, cost)


def best_choices(tallies: Sequence[int], count: int) -> tuple[int, ...]:
    """The choices with most votes, best first; of equals the one that was written first. Choices count from 1."""
    order = sorted(range(len(tallies)), key=lambda index: (-tallies[index], index))
    return tuple(index + 1 for index in order[:count])


async def _continue(
    client: LlmClient, search: Search, target: str, draft: str, number: int, reference: str, place: int
) -> tuple[list[Completion], bool]:
    """n_s continuations of one kept draft, and whether anything was cut.

    Samples are numbered on over the kept drafts, so that two of them with the same text are not continued alike.
    """
    left = room(search.context, search.draft_tokens, "draft", target="", draft="-", reference="", number=number)
    # The draft goes before the key elements: what it loses is lost for good. It takes half of the room, or more.
    own = fit(draft, max(left // 2, left - count_tokens(target) - count_tokens(reference)))
    rest = left - count_tokens(own.text)
    about = fit(target, rest // 2)
    added = fit(reference, rest - count_tokens(about.text))
    messages = PROMPTS.messages("draft", target=about.text, draft=own.text, reference=added.text, number=number)
    found = await client.samples(
        messages,
        search.samples,
        first=place * search.samples,
        temperature=search.temperature,
        max_tokens=search.draft_tokens,
    )
    return found, own.cut or about.cut or added.cut


async def _vote(
    client: LlmClient, search: Search, target: str, references: str, drafts: Sequence[str]
) -> tuple[tuple[int | None, ...], list[Completion], bool]:
    """n_v votes over the drafts, the completions they were read from, and whether anything was cut."""
    messages, cut = _vote_messages(search, target, references, drafts)
    cast = await client.samples(messages, search.votes, temperature=search.temperature, max_tokens=search.vote_tokens)
    return tuple(read_vote(each.text, len(drafts)) for each in cast), cast, cut


def _vote_messages(search: Search, target: str, references: str, drafts: Sequence[str]) -> tuple[list[Message], bool]:
    left = room(search.context, search.vote_tokens, "vote", target="", references="", drafts=[""] * len(drafts))
    # Two thirds of the room are the drafts', in equal parts, so that none looks worse for being cut alone.
    shown = [fit(draft, left * 2 // 3 // len(drafts)) for draft in drafts]
    about, known = fit(target, left // 6), fit(references, left // 6)
    messages = PROMPTS.messages(
        "vote", target=about.text, references=known.text, drafts=[draft.text for draft in shown]
    )
    return messages, any(each.cut for each in (about, known, *shown))


def _reference_lines(references: Sequence[Reference], elements: Sequence[KeyElements]) -> str:
    """Each reference so far in one line: what the evaluator checks drafts against, short since it grows with |R|."""
    lines = []
    for reference, known in zip(references, elements, strict=True):
        gist = known.contributions or known.methodology or known.research_questions
        lines.append(f"[Reference {reference.number}] {reference.title}. {gist}".strip())
    return "\n".join(lines)


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
