"""Which passages help to answer a question, and what they say as claims: arXivBot's filter and split, in one call."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import dropwhile
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, create_model

from pipeline.answering.prompting import (
    CHARS_PER_TOKEN,
    NOTHING,
    PROMPTS,
    ask,
    first_that_fit,
    room,
    shared,
    short_question,
)
from pipeline.answering.retrieving import Found
from pipeline.llm.client import REPAIR_TOKENS, LlmClient, Spent
from pipeline.llm.structured import AtMost

CLAIM_CHARS = 240
# Claims of earlier hops, the newest first, take no more than this part of the context: the rest is for passages.
_KNOWN_SHARE = 8
_FAULTS = ("unknown", "irrelevant", "repeated", "questions", "headings", "over")
# A sign belongs to its number.
_WORD = re.compile(r"[-−]?\w+")
_LEADING = frozenset(("the", "paper", "study", "article"))
_FRAME_TOKENS, _PER_CLAIM = 40, 24 + int(CLAIM_CHARS / CHARS_PER_TOKEN)


@dataclass(frozen=True, slots=True)
class Claimed:
    """Claims with their passages, best first; and what was dropped of the answer."""

    claims: tuple[tuple[str, Found], ...] = ()
    relevant: tuple[int, ...] = ()
    """Numbers of the passages that the model called relevant, of those that it was shown."""
    unknown: int = 0
    """Claims of passages that were not shown."""
    irrelevant: int = 0
    """Claims of passages that the model had filtered out itself."""
    unfiltered: bool = False
    """Whether it called no passage relevant and made claims all the same: then nothing is filtered out."""
    repeated: int = 0
    """Claims that are empty, or known already."""
    questions: int = 0
    """Claims that ask."""
    headings: int = 0
    """Claims that are the heading of their passage, or a part of it, and nothing that it says."""
    over: int = 0
    """Claims beyond those that were asked for."""
    cut: bool = False
    spent: Spent = NOTHING
    failure: str | None = None

    def trace(self) -> dict[str, Any]:
        dropped = {name: getattr(self, name) for name in _FAULTS}
        told = {"relevant": list(self.relevant), "unfiltered": self.unfiltered, "dropped": dropped}
        return told | {"cut": self.cut, "failure": self.failure}


async def claims_of(
    client: LlmClient, question: str, found: Sequence[Found], *, most: int, known: Sequence[str], context: int
) -> Claimed:
    """At most `most` claims of these passages that help with a question, at temperature 0.

    known: claims of earlier hops, which are not made again. Where there is nothing to read, nothing is asked.
    """
    if not found or most < 1:
        return Claimed()
    longest = _FRAME_TOKENS + 4 * len(found) + _PER_CLAIM * most
    frame = {
        "question": short_question(question, context),
        "known": "\n".join(first_that_fit([f"- {claim}" for claim in reversed(known)], context // _KNOWN_SHARE)),
        "count": len(found),
        "most": most,
        "characters": CLAIM_CHARS,
    }
    left = room(context, longest + REPAIR_TOKENS, "claims", shown=[""] * len(found), **frame)
    shown, cut = shared([each.told() for each in found], left)
    told = await ask(client, PROMPTS.messages("claims", shown=shown, **frame), claims_form(len(found), most), longest)
    if told.value is None:
        return Claimed(cut=cut, spent=told.spent, failure=told.failure)
    return _read(told.value, found, most, known, cut, told.spent)


def _read(given: Any, found: Sequence[Found], most: int, known: Sequence[str], cut: bool, cost: Spent) -> Claimed:
    """What may stand of an answer: claims of passages that were shown and called relevant, each once."""
    places = range(1, len(found) + 1)
    relevant = tuple(sorted({number for number in given.relevant if number in places}))
    dropped: dict[str, Any] = dict.fromkeys(_FAULTS, 0)
    seen = set(map(_key, known))
    kept: list[tuple[str, Found]] = []
    for each in given.claims:
        text = " ".join(each.claim.split())
        # SmolLM2 leaves the list empty and makes three claims: a filter that says nothing is taken for none.
        fault = _fault(each.passage, places, relevant or places)
        fault = fault or _empty(text, found[each.passage - 1], seen) or ("over" if len(kept) == most else None)
        if fault is not None:
            dropped[fault] += 1
            continue
        seen.add(_key(text))
        kept.append((text, found[each.passage - 1]))
    return Claimed(tuple(kept), relevant, unfiltered=not relevant and bool(kept), cut=cut, spent=cost, **dropped)


def _fault(passage: int, places: range, relevant: Sequence[int]) -> str | None:
    if passage not in places:
        return "unknown"
    return None if passage in relevant else "irrelevant"


def _empty(text: str, passage: Found, seen: set[str]) -> str | None:
    """What keeps a claim from saying anything new. A known one, said again, would be held up by another passage: of a
    model of 1.5 billion weights these were copies under a passage that says nothing of the kind. It also gave the
    question back as its claim."""
    key = _key(text)
    if not key or key in seen:
        return "repeated"
    if text.endswith("?"):
        return "questions"
    return "headings" if _says(passage.heading(), key) and not _says(passage.content(), key) else None


def _says(text: str, key: str) -> bool:
    return f" {key} " in f" {_key(text)} "


def _key(text: str) -> str:
    """What two claims share that say the same in the same words, whatever stands between them or leads up to it."""
    words = _WORD.findall(text.casefold())
    return " ".join(dropwhile(_LEADING.__contains__, words))


@cache
def claims_form(passages: int, most: int) -> type[BaseModel]:
    """The form of the answer, bounded so that a small model under constrained decoding comes to an end."""
    one = create_model(
        "PassageClaim",
        __config__=ConfigDict(extra="forbid"),
        passage=(int, ...),
        claim=(Annotated[str, AtMost(CLAIM_CHARS)], ...),
    )
    some = Annotated[list[one], AtMost(most)]  # type: ignore[valid-type]
    return create_model(
        "Claims",
        __config__=ConfigDict(extra="forbid"),
        relevant=(Annotated[list[int], AtMost(passages)], ...),
        claims=(some, ...),
    )
