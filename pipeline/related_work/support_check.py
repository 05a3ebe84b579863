"""Judgement and revision of the sentences of a grounded draft: one call judges all sentences, one
revises those that are not supported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pipeline.llm.client import REPAIR_TOKENS, LlmClient
from pipeline.llm.context import count_tokens
from pipeline.llm.messages import LlmAnswerError, Spent
from pipeline.llm.structured import make_form
from pipeline.related_work.evidence import NamedPassage, names_field, names_in
from pipeline.related_work.grounded_draft import (
    LONGEST_CHARS,
    PASSAGES_PER_SENTENCE,
    TiedSentence,
    cite,
)
from pipeline.related_work.prompt_files import PROMPTS, at_most
from pipeline.related_work.summary import normalize
from pipeline.settings import Settings
from pipeline.text import one_line

Verdict = Literal["supported", "partly", "not"]

_QUOTE_CHARS = 160
# A verdict with its quote takes 60 to 80 tokens as JSON.
_PER_VERDICT, _FRAME_TOKENS = 88, 32
# The least of a passage that is worth showing, in tokens.
_FEWEST_TOKENS = 24
# A judge's answer takes at most this part of the context.
_SHARE = 3


@dataclass(frozen=True, slots=True)
class SupportCheck:
    """The verdict on each sentence by its place, from 1; sentences without citations have none."""

    verdicts: Mapping[int, Verdict]
    quotes: Mapping[int, str]
    spent: Spent = field(default_factory=Spent)
    failure: str | None = None
    unjudged: tuple[int, ...] = ()
    """Sentences that cite and have no verdict: there was no room for them, or the judge left them
    out.
    """
    cut: bool = False
    """Whether passages were cut to fit the context."""

    def unsupported(self) -> list[int]:
        return sorted(place for place, verdict in self.verdicts.items() if verdict != "supported")

    def trace(self) -> dict[str, Any]:
        verdicts = [
            {"sentence": place, "support": verdict, "quote": self.quotes.get(place, "")}
            for place, verdict in sorted(self.verdicts.items())
        ]
        return {
            "verdicts": verdicts,
            "unjudged": list(self.unjudged),
            "cut": self.cut,
            "failure": self.failure,
        }


@dataclass(frozen=True, slots=True)
class Revision:
    """The sentences after revision; `places`: of those that were changed, from 1."""

    sentences: tuple[TiedSentence, ...]
    places: tuple[int, ...] = ()
    spent: Spent = field(default_factory=Spent)
    failure: str | None = None
    cut: bool = False
    """Whether passages were cut to fit the context."""


async def check_support(
    client: LlmClient,
    sentences: Sequence[TiedSentence],
    passages: Mapping[str, NamedPassage],
    settings: Settings,
) -> SupportCheck:
    """Whether its passages support each sentence that cites, at temperature 0.

    Sentences whose verdicts have no room in one answer (from some 30 on, in 8,192 tokens) have no
    verdict.
    """
    context, limited = settings.llm_context, bool(settings.draft_tokens)
    cited = [place for place, sentence in enumerate(sentences, 1) if sentence.references]
    places = cited[: _answers_that_fit(context, _PER_VERDICT)]
    if not places:
        return SupportCheck({}, {})
    needed = _FRAME_TOKENS + _PER_VERDICT * len(places)
    values = {"characters": _QUOTE_CHARS if limited else None}
    room = PROMPTS.room(context, needed + REPAIR_TOKENS, "support", sentences="", **values)
    listing, cut = _sentences_with_passages(sentences, places, passages, room)
    messages = PROMPTS.messages("support", sentences=listing, **values)
    try:
        answer = await client.answer(
            messages,
            _verdicts_model(len(places) if limited else None),
            max_tokens=needed if limited else None,
        )
    except LlmAnswerError as error:
        return SupportCheck({}, {}, error.spent, str(error), tuple(cited), cut)
    by_place = {item.sentence: item for item in answer.value.verdicts if item.sentence in places}
    quotes = {place: one_line(item.quote) for place, item in by_place.items()}
    verdicts = {place: item.support for place, item in by_place.items()}
    unjudged = tuple(place for place in cited if place not in verdicts)
    return SupportCheck(verdicts, quotes, answer.spent, unjudged=unjudged, cut=cut)


async def revise(
    client: LlmClient,
    sentences: Sequence[TiedSentence],
    unsupported: Sequence[int],
    passages: Mapping[str, NamedPassage],
    context: int,
    characters: int | None,
) -> Revision:
    """The unsupported sentences, or as many of them as one answer holds, written anew from their
    passages.

    At temperature 0; without such sentences no call is made. A revised sentence keeps its
    references, even where the model changes them; one that comes back empty stays. characters:
    longest sentence, None for no limit.
    """
    before = tuple(sentences)
    per_sentence = _PER_VERDICT + (characters or LONGEST_CHARS) // 3
    places = unsupported[: _answers_that_fit(context, per_sentence)]
    if not places:
        return Revision(before)
    needed = _FRAME_TOKENS + per_sentence * len(places)
    values = {"characters": characters, "example": next(iter(passages), "R1P1")}
    room = PROMPTS.room(context, needed + REPAIR_TOKENS, "revise", sentences="", **values)
    listing, cut = _sentences_with_passages(sentences, places, passages, room)
    messages = PROMPTS.messages("revise", sentences=listing, **values)
    try:
        answer = await client.answer(
            messages,
            _revisions_model(None if characters is None else len(places), characters),
            max_tokens=None if characters is None else needed,
        )
    except LlmAnswerError as error:
        return Revision(before, (), error.spent, str(error), cut)
    revised = {
        item.sentence: _revised(before[item.sentence - 1], item, passages)
        for item in answer.value.sentences
        if item.sentence in places and item.text.strip()
    }
    changed = tuple(
        sorted(
            place for place, sentence in revised.items() if sentence.text != before[place - 1].text
        )
    )
    after = tuple(revised.get(place, sentence) for place, sentence in enumerate(before, 1))
    return Revision(after, changed, answer.spent, cut=cut)


def _answers_that_fit(context: int, tokens: int) -> int:
    """How many answers of so many tokens fit into a judge's share of the context."""
    return max((context // _SHARE - _FRAME_TOKENS) // tokens, 1)


def _revised(old: TiedSentence, item: Any, passages: Mapping[str, NamedPassage]) -> TiedSentence:
    text, _ = normalize(one_line(item.text))
    names = tuple(name for name in names_in(item.passages) if name in passages)
    return replace(old, text=cite(text, old.references), passages=names or old.passages)


def _sentences_with_passages(
    sentences: Sequence[TiedSentence],
    places: Sequence[int],
    passages: Mapping[str, NamedPassage],
    room: int,
) -> tuple[str, bool]:
    """The sentences at these places with their passages, each cut to its share of the room; and
    whether any was.
    """
    names = [_passages_to_show(sentences[place - 1], passages) for place in places]
    texts = [f"Sentence {place}: {sentences[place - 1].text}" for place in places]
    count = max(sum(map(len, names)), 1)
    share = max((room - sum(map(count_tokens, texts)) - 2 * len(texts)) // count, _FEWEST_TOKENS)
    lines = {name: passages[name].line(share) for some in names for name in some}
    parts = [
        "\n".join([text, *(lines[name] for name in some)])
        for text, some in zip(texts, names, strict=True)
    ]
    return "\n\n".join(parts), any(line != passages[name].line() for name, line in lines.items())


def _passages_to_show(sentence: TiedSentence, passages: Mapping[str, NamedPassage]) -> list[str]:
    """The sentence's own passages, and the first of each cited work of which it names none."""
    names = list(sentence.passages)
    for number in sentence.references:
        own = [name for name in passages if name.startswith(f"R{number}P")]
        if own and not set(own) & set(names):
            names.append(own[0])
    return names


def _verdicts_model(most: int | None) -> type[Any]:
    quote = at_most(str, None if most is None else _QUOTE_CHARS)
    verdict = make_form("Verdict", sentence=int, support=Verdict, quote=quote)
    return make_form("Verdicts", verdicts=at_most(list[verdict], most))  # type: ignore[valid-type]


def _revisions_model(most: int | None, characters: int | None) -> type[Any]:
    names = names_field(None if most is None else PASSAGES_PER_SENTENCE)
    revision = make_form("Revision", sentence=int, text=at_most(str, characters), passages=names)
    return make_form("Revisions", sentences=at_most(list[revision], most))  # type: ignore[valid-type]
