"""An answer as any system hands it over: sentences on claims, claims on passages that were retrieved, and nothing
else.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pipeline.answering.prompting import NOTHING
from pipeline.answering.retrieving import Found
from pipeline.answering.steps import Steps
from pipeline.corpus.passages.sentences import split_sentences
from pipeline.llm.client import Spent

ABSTAINED = "The corpus does not hold the answer to this question."
"""What an answer says whose claims do not hold it: always these words, so that nobody has to guess."""

Source = Literal["passage", "model", "front_matter"]
"""Where a claim is from: read in its passage, said by the model and supported by it, or a table's row."""
Fact = tuple[str, Found, Source]
"""What becomes a claim once it has a number."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One fact, numbered from 1, with the passage that it rests on, and the hop that brought it."""

    number: int
    text: str
    passage_id: str
    arxiv_id: str
    anchor: str
    hop: int
    source: Source = "passage"

    def line(self) -> str:
        """As prompts show it."""
        return f"[{self.number}] {self.text}"


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of an answer, and the numbers of the claims that it rests on."""

    text: str
    claims: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Answered:
    """One system's answer to one question.

    A claim rests on a passage that was retrieved, and a sentence on claims: an answer for which that is not so cannot
    be made (ValueError). Only a system that retrieves nothing has sentences without claims.
    """

    text: str
    sentences: tuple[Sentence, ...]
    claims: tuple[Claim, ...] = ()
    queries: tuple[str, ...] = ()
    """The query of each hop."""
    shown: tuple[tuple[Found, ...], ...] = ()
    """The passages that the model read in each hop."""
    hops: int = 0
    abstained: bool = False
    trace: Mapping[str, Any] = field(default_factory=dict)
    spent: Spent = NOTHING

    def __post_init__(self) -> None:
        retrieved = {each.passage_id for hop in self.shown for each in hop}
        strangers = [claim.passage_id for claim in self.claims if claim.passage_id not in retrieved]
        if strangers:
            raise ValueError(f"claims rest on passages that were not retrieved: {', '.join(strangers)}")
        numbers = {claim.number for claim in self.claims}
        told = [set(each.claims) for each in self.sentences]
        if any(not named <= numbers or (numbers and not named) for named in told):
            raise ValueError(f"a sentence rests on no claim, or on one that there is not: {told} of {sorted(numbers)}")

    def trace_json(self) -> str:
        """The trace as text, the same for the same answer."""
        return json.dumps(self.trace, ensure_ascii=False, sort_keys=True)


def numbered(facts: Iterable[Fact], hop: int, after: int = 0) -> tuple[Claim, ...]:
    """Claims on passages, numbered on from `after`."""
    return tuple(
        Claim(number, text, found.passage_id, found.arxiv_id, found.anchor, hop, source)
        for number, (text, found, source) in enumerate(facts, after + 1)
    )


def grounded_answer(
    sentences: Sequence[Sentence],
    claims: Sequence[Claim],
    queries: Sequence[str],
    shown: Sequence[Sequence[Found]],
    steps: Steps,
) -> Answered:
    """An answer of these sentences; one that abstains where there are none."""
    return Answered(
        " ".join(sentence.text for sentence in sentences) or ABSTAINED,
        tuple(sentences),
        tuple(claims),
        tuple(queries),
        tuple(map(tuple, shown)),
        hops=len(queries),
        abstained=not sentences,
        trace={"steps": steps.done},
        spent=steps.spent,
    )


def plain_answer(text: str, steps: Steps | None = None) -> Answered:
    """An answer that rests on nothing: the model's alone, or one that was made elsewhere. Empty ones abstain."""
    steps = steps or Steps()
    told = tuple(Sentence(" ".join(sentence.split()), ()) for sentence in split_sentences(text))
    return Answered(text.strip() or ABSTAINED, told, abstained=not told, trace={"steps": steps.done}, spent=steps.spent)
