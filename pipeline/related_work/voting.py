"""The reflective evaluator of ChatCite: votes over drafts, read with tolerance, and the drafts with most votes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.llm.client import Completion, LlmClient
from pipeline.llm.context import count_tokens, fit
from pipeline.llm.messages import Message
from pipeline.related_work.prompting import PROMPTS, room, words_of

_VERDICT = re.compile(
    r"best\s+(?:choice|draft|option)\s*(?:is|:)\W*(?:the\s+)?(?:(?:choice|draft|option|number|no\.?)\W*)?"
    r"([0-9]{1,4})(?!\.?[0-9])",
    re.IGNORECASE,
)
_BARE_NUMBER = re.compile(r"\W*(?:choice\W*)?([0-9]{1,4})\W*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Evaluator:
    """How votes are cast: how many, how long at most (tokens), how warm, and what the model can read (tokens)."""

    votes: int
    tokens: int
    temperature: float
    context: int


@dataclass(frozen=True, slots=True)
class Vote:
    """What came of voting over drafts, which count from 1."""

    votes: tuple[int | None, ...]
    """The choice of each vote; None for an abstention: no number could be read, or none that is a choice."""
    tallies: tuple[int, ...]
    cast: tuple[Completion, ...]
    cut: bool
    """Whether anything was cut to fit the context."""

    def ranked(self) -> tuple[int, ...]:
        """All choices, best first."""
        return best_choices(self.tallies, len(self.tallies))


async def vote(
    client: LlmClient, evaluator: Evaluator, target: str, references: str, drafts: Sequence[str], basis: str
) -> Vote:
    """n_v votes over the drafts; with n_v = 0 nobody is asked, and drafts rank in the order they were written.

    `target`, `references`: what the evaluator is told of them. `basis`: what that is, in words ("key elements").
    """
    if not evaluator.votes:
        return Vote((), (0,) * len(drafts), (), False)
    messages, cut = _messages(evaluator, target, references, drafts, basis)
    cast = await client.samples(
        messages, evaluator.votes, temperature=evaluator.temperature, max_tokens=evaluator.tokens
    )
    votes = tuple(read_vote(each.text, len(drafts)) for each in cast)
    return Vote(votes, tuple(votes.count(choice) for choice in range(1, len(drafts) + 1)), tuple(cast), cut)


def _messages(
    evaluator: Evaluator, target: str, references: str, drafts: Sequence[str], basis: str
) -> tuple[list[Message], bool]:
    frame = {"basis": basis, "words": words_of(evaluator.tokens)}
    empty = {"target": "", "references": "", "drafts": [""] * len(drafts)}
    left = room(evaluator.context, evaluator.tokens, "vote", **empty, **frame)
    lines = count_tokens(references)
    # Two thirds of the room are the drafts' or more, in equal parts, so that none looks worse for being cut alone.
    most = max(left * 2 // 3, left - count_tokens(target) - lines)
    shown = [fit(draft, most // len(drafts)) for draft in drafts]
    texts = [draft.text for draft in shown]
    rest = left - sum(map(count_tokens, texts))
    # A sixth, where there is no more: a number that does not change, so that prompts go on beginning alike.
    about = fit(target, max(left // 6, rest - lines))
    known = fit(references, rest - count_tokens(about.text))
    messages = PROMPTS.messages("vote", target=about.text, references=known.text, drafts=texts, **frame)
    return messages, any(each.cut for each in (about, known, *shown))


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
