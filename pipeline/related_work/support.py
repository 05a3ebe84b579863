"""Whether a section's sentences are supported by the passages they rest on, and revising those that are not.

One call judges all sentences, one revises.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, create_model

from pipeline.llm.client import REPAIR_TOKENS, LlmAnswerError, LlmClient, Spent
from pipeline.llm.context import count_tokens
from pipeline.llm.structured import AtMost
from pipeline.related_work.evidence import Named, named_in
from pipeline.related_work.prompting import NOTHING, PROMPTS, room
from pipeline.related_work.summary import normalise
from pipeline.related_work.tied import Tied, cite, names_field

Verdict = Literal["supported", "partly", "not"]

_QUOTE_CHARS = 160
# A verdict with its quote takes 60 to 80 tokens as JSON.
_PER_VERDICT, _FRAME_TOKENS = 88, 32
# Fewer tokens of a passage than this tell nothing.
_FEWEST_TOKENS = 24
# What an answer may take of a context at most, in parts of it.
_SHARE = 3


@dataclass(frozen=True, slots=True)
class Judged:
    """The verdict on each sentence by its place, from 1; sentences without citations have none."""

    verdicts: Mapping[int, Verdict]
    quotes: Mapping[int, str]
    spent: Spent = NOTHING
    failure: str | None = None
    unjudged: tuple[int, ...] = ()
    """Sentences that cite and have no verdict: there was no room for them, or the judge left them out."""
    cut: bool = False
    """Whether passages were cut to fit the context."""

    def faulty(self) -> list[int]:
        return sorted(place for place, verdict in self.verdicts.items() if verdict != "supported")

    def trace(self) -> dict[str, Any]:
        told = [
            {"sentence": place, "support": verdict, "quote": self.quotes.get(place, "")}
            for place, verdict in sorted(self.verdicts.items())
        ]
        return {"verdicts": told, "unjudged": list(self.unjudged), "cut": self.cut, "failure": self.failure}


@dataclass(frozen=True, slots=True)
class Revised:
    """The sentences after revision; `places`: of those that were changed, from 1."""

    sentences: tuple[Tied, ...]
    places: tuple[int, ...] = ()
    spent: Spent = NOTHING
    failure: str | None = None
    cut: bool = False
    """Whether passages were cut to fit the context."""


async def judge(client: LlmClient, sentences: Sequence[Tied], passages: Mapping[str, Named], context: int) -> Judged:
    """What the passages say of each sentence that cites, at temperature 0.

    Sentences whose verdicts have no room in one answer (from some 30 on, in 8,192 tokens) have none.
    """
    cited = [place for place, sentence in enumerate(sentences, 1) if sentence.references]
    places = cited[: _in_one_answer(context, _PER_VERDICT)]
    if not places:
        return Judged({}, {})
    longest = _FRAME_TOKENS + _PER_VERDICT * len(places)
    frame = {"characters": _QUOTE_CHARS}
    left = room(context, longest + REPAIR_TOKENS, "support", sentences="", **frame)
    shown, cut = _shown(sentences, places, passages, left)
    messages = PROMPTS.messages("support", sentences=shown, **frame)
    try:
        answer = await client.answer(messages, _verdicts(len(places)), max_tokens=longest)
    except LlmAnswerError as error:
        return Judged({}, {}, error.spent, str(error), tuple(cited), cut)
    given = {each.sentence: each for each in answer.value.verdicts if each.sentence in places}  # type: ignore[attr-defined]
    quotes = {place: " ".join(each.quote.split()) for place, each in given.items()}
    verdicts = {place: each.support for place, each in given.items()}
    unjudged = tuple(place for place in cited if place not in verdicts)
    return Judged(verdicts, quotes, answer.spent, unjudged=unjudged, cut=cut)


async def revise(
    client: LlmClient,
    sentences: Sequence[Tied],
    places: Sequence[int],
    passages: Mapping[str, Named],
    *,
    context: int,
    characters: int,
) -> Revised:
    """These sentences, or as many of them as one answer holds, written anew from their passages, at temperature 0.

    Where there are none, nothing is asked. A revised sentence keeps its references, whatever the model made of them;
    one that comes back empty stays.
    """
    kept, each_takes = tuple(sentences), _PER_VERDICT + characters // 3
    places = places[: _in_one_answer(context, each_takes)]
    if not places:
        return Revised(kept)
    longest = _FRAME_TOKENS + each_takes * len(places)
    frame = {"characters": characters, "example": next(iter(passages), "R1P1")}
    left = room(context, longest + REPAIR_TOKENS, "revise", sentences="", **frame)
    shown, cut = _shown(sentences, places, passages, left)
    messages = PROMPTS.messages("revise", sentences=shown, **frame)
    try:
        answer = await client.answer(messages, _revisions(len(places), characters), max_tokens=longest)
    except LlmAnswerError as error:
        return Revised(kept, (), error.spent, str(error), cut)
    given = {each.sentence: each for each in answer.value.sentences if each.sentence in places and each.text.strip()}  # type: ignore[attr-defined]
    made = {place: _revised(kept[place - 1], each, passages) for place, each in given.items()}
    changed = tuple(sorted(place for place, sentence in made.items() if sentence.text != kept[place - 1].text))
    return Revised(tuple(made.get(place, old) for place, old in enumerate(kept, 1)), changed, answer.spent, cut=cut)


def _in_one_answer(context: int, tokens: int) -> int:
    """How many answers of so many tokens fit into an answer's share of the context."""
    return max((context // _SHARE - _FRAME_TOKENS) // tokens, 1)


def _revised(old: Tied, given: Any, passages: Mapping[str, Named]) -> Tied:
    text, _ = normalise(" ".join(given.text.split()))
    named = tuple(name for name in named_in(given.passages) if name in passages)
    return replace(old, text=cite(text, old.references), passages=named or old.passages)


def _shown(
    sentences: Sequence[Tied], places: Sequence[int], passages: Mapping[str, Named], left: int
) -> tuple[str, bool]:
    """The sentences at these places with their passages, each of them cut to its share of the room; and whether any
    was."""
    names = [_names(sentences[place - 1], passages) for place in places]
    texts = [f"Sentence {place}: {sentences[place - 1].text}" for place in places]
    count = max(sum(map(len, names)), 1)
    each_has = max((left - sum(map(count_tokens, texts)) - 2 * len(texts)) // count, _FEWEST_TOKENS)
    lines = {name: passages[name].line(each_has) for each in names for name in each}
    parts = [
        "\n".join([text, *(lines[name] for name in rests_on)]) for text, rests_on in zip(texts, names, strict=True)
    ]
    return "\n\n".join(parts), any(line != passages[name].line() for name, line in lines.items())


def _names(sentence: Tied, passages: Mapping[str, Named]) -> list[str]:
    """The sentence's own passages; where it names none of a work that it cites, the first one known of that work."""
    named = list(sentence.passages)
    for number in sentence.references:
        own = [name for name in passages if name.startswith(f"R{number}P")]
        if own and not set(own) & set(named):
            named.append(own[0])
    return named


def _verdicts(count: int) -> type[BaseModel]:
    one = create_model(
        "Verdict",
        __config__=ConfigDict(extra="forbid"),
        sentence=(int, ...),
        support=(Verdict, ...),
        quote=(Annotated[str, AtMost(_QUOTE_CHARS)], ...),
    )
    some = Annotated[list[one], AtMost(count)]  # type: ignore[valid-type]
    return create_model("Verdicts", __config__=ConfigDict(extra="forbid"), verdicts=(some, ...))


def _revisions(count: int, characters: int) -> type[BaseModel]:
    one = create_model(
        "Revision",
        __config__=ConfigDict(extra="forbid"),
        sentence=(int, ...),
        text=(Annotated[str, AtMost(characters)], ...),
        passages=names_field(),
    )
    some = Annotated[list[one], AtMost(count)]  # type: ignore[valid-type]
    return create_model("Revisions", __config__=ConfigDict(extra="forbid"), sentences=(some, ...))
