"""A grounded draft: sentences with the references they cite and the passages that support them.

The form in which a model answers, how it is read, what it lacks, and the judgement and revision of
its sentences. One call judges all sentences, one revises those that are not supported.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from pipeline.llm.client import REPAIR_TOKENS, LlmAnswerError, LlmClient, Spent
from pipeline.llm.context import count_tokens
from pipeline.llm.structured import make_form
from pipeline.related_work.evidence import NamedPassage, names_field, names_in
from pipeline.related_work.prompt_files import PROMPTS, AnswerLength, at_most
from pipeline.related_work.summary import cited_numbers, normalize
from pipeline.settings import Settings
from pipeline.text import one_line

Verdict = Literal["supported", "partly", "not"]

# A sentence takes a quarter of the draft's tokens at most, between 60, fewer of which hold no
# comparison, and 128.
_SHARE_OF_DRAFT, _SHORTEST, _LONGEST = 4, 60, 128
_CHARS_PER_TOKEN = 4.5
# Beside its text a sentence costs its frame and names as JSON, about as much again.
JSON_FACTOR = 2
_MOST_PASSAGES = 4
# Numbers of references that a sentence may name beyond those there are: they are read and counted.
_SPARE = 4
_STOP = re.compile(r"[.!?][\"'”’)\]]*$")

_QUOTE_CHARS = 160
# A verdict with its quote takes 60 to 80 tokens as JSON.
_PER_VERDICT, _FRAME_TOKENS = 88, 32
# The least of a passage that is worth showing, in tokens.
_FEWEST_TOKENS = 24
# What a judge's answer takes of a context at most, in parts of it.
_SHARE = 3


@dataclass(frozen=True, slots=True)
class TiedSentence:
    """One sentence, `[Reference i]` in its text for each of its references, and the names of its
    passages.
    """

    text: str
    references: tuple[int, ...]
    passages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Faults:
    """References that a draft does not cite or should not, and how many names in it are no
    passage's.
    """

    missing: tuple[int, ...]
    out_of_range: tuple[int, ...]
    unknown_passages: int = 0

    @property
    def none(self) -> bool:
        return not self.missing and not self.out_of_range

    def trace(self) -> dict[str, Any]:
        return {
            "missing": list(self.missing),
            "out_of_range": list(self.out_of_range),
            "unknown_passages": self.unknown_passages,
        }


@dataclass(frozen=True, slots=True)
class TiedDraft:
    """A draft. Citations out of range are removed from its sentences; `faults` still lists them."""

    sentences: tuple[TiedSentence, ...]
    faults: Faults
    failure: str | None = None
    """Why it is only the draft before it: the answer could not be read."""

    def lines(self) -> str:
        return lines_of(self.sentences)


def lines_of(sentences: Iterable[TiedSentence]) -> str:
    """The sentences as a prompt shows them, each with its passages."""
    return "\n".join(
        f"{sentence.text} ({', '.join(sentence.passages) or 'no passage'})"
        for sentence in sentences
    )


def read_draft(answer: BaseModel, required: Sequence[int], passages: Collection[str]) -> TiedDraft:
    """The draft of an answer in the form of `draft_model`. `required`: numbers that it must cite,
    and no others.
    """
    read = [_read_sentence(item, required, passages) for item in answer.sentences]  # type: ignore[attr-defined]
    sentences = tuple(sentence for sentence, _, _ in read if sentence.text)
    wrong = tuple(sorted({number for _, numbers, _ in read for number in numbers}))
    unknown = sum(count for _, _, count in read)
    return TiedDraft(sentences, Faults(missing_references(sentences, required), wrong, unknown))


def missing_references(
    sentences: Iterable[TiedSentence], required: Iterable[int]
) -> tuple[int, ...]:
    """The references that no sentence cites."""
    cited = {number for sentence in sentences for number in sentence.references}
    return tuple(number for number in required if number not in cited)


def _read_sentence(
    item: Any, required: Sequence[int], passages: Collection[str]
) -> tuple[TiedSentence, set[int], int]:
    """A sentence without what it must not cite, the numbers that it must not cite, and how many
    names are no passage's.
    """
    text, _ = normalize(one_line(item.text))
    named = [*cited_numbers(text), *item.references]
    numbers = tuple(number for number in dict.fromkeys(named) if number in required)
    names = names_in(item.passages)
    known = tuple(name for name in names if name in passages)
    return (
        TiedSentence(cite(text, numbers), numbers, known),
        set(named) - set(required),
        len(names) - len(known),
    )


def cite(text: str, numbers: Sequence[int]) -> str:
    """The text citing these and no others: other citations are removed, missing ones go before the
    full stop.
    """
    for number in set(cited_numbers(text)) - set(numbers):
        text = text.replace(f"[Reference {number}]", "")
    text = re.sub(r" +([.,;:)])", r"\1", re.sub(r" {2,}", " ", text)).strip()
    lacking = " ".join(
        f"[Reference {number}]" for number in numbers if number not in cited_numbers(text)
    )
    if not text or not lacking:
        return text
    stop = _STOP.search(text)
    return f"{text[: stop.start()]} {lacking}{stop.group()}" if stop else f"{text} {lacking}"


def patch_draft(
    draft: TiedDraft, before: Sequence[TiedSentence], plain: Mapping[int, TiedSentence]
) -> tuple[TiedDraft, list[int]]:
    """The draft with a sentence for each reference that it misses, and the references whose
    sentence is plain.

    The sentence is that of the draft before which cites the reference, with all its citations, if
    there is one; else the plain one made of its key elements.
    """
    sentences, made = list(draft.sentences), []
    for number in draft.faults.missing:
        if not missing_references(sentences, [number]):
            continue
        earlier = next((sentence for sentence in before if number in sentence.references), None)
        sentences.append(earlier or plain[number])
        if earlier is None:
            made.append(number)
    return (
        TiedDraft(tuple(sentences), Faults((), (), draft.faults.unknown_passages), draft.failure),
        made,
    )


def section_text(sentences: Sequence[TiedSentence], groups: Sequence[Sequence[int]]) -> str:
    """The sentences as text, with a new paragraph where a sentence cites another group than the one
    before.
    """
    paragraphs: list[list[str]] = []
    group: int | None = None
    for sentence in sentences:
        cited = (
            place for place, members in enumerate(groups) if set(members) & set(sentence.references)
        )
        own = next(cited, group)
        if not paragraphs or (group is not None and own != group):
            paragraphs.append([])
        paragraphs[-1].append(sentence.text)
        group = own
    return "\n\n".join(" ".join(paragraph) for paragraph in paragraphs)


def sentence_chars(draft: AnswerLength) -> int | None:
    """Longest sentence of a draft, in characters; None for no limit."""
    if draft.limit is None:
        return None
    return int(min(max(draft.limit // _SHARE_OF_DRAFT, _SHORTEST), _LONGEST) * _CHARS_PER_TOKEN)


def most_sentences(references: int) -> int:
    """Sentences of a draft on so many references, at most."""
    return 2 * references + 2


@cache
def draft_model(references: int, characters: int | None) -> type[BaseModel]:
    """The form of a draft on so many references.

    characters: longest sentence. It and the number of sentences are bounded so that a small model
    under constrained decoding comes to an end; None for no bounds.
    """
    limited = characters is not None
    sentence = make_form(
        "TiedSentence",
        text=at_most(str, characters),
        references=at_most(list[int], references + _SPARE if limited else None),
        passages=names_field(_MOST_PASSAGES if limited else None),
    )
    sentences = at_most(list[sentence], most_sentences(references) if limited else None)  # type: ignore[valid-type]
    return make_form("TiedDraft", sentences=Annotated[sentences, Field(min_length=1)])


# --- support
# --------------------------------------------------------------------------------------------------


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
    """What the passages say of each sentence that cites, at temperature 0.

    Sentences whose verdicts have no room in one answer (from some 30 on, in 8,192 tokens) have
    none.
    """
    context, limited = settings.llm_context, bool(settings.draft_tokens)
    cited = [place for place, sentence in enumerate(sentences, 1) if sentence.references]
    places = cited[: _answers_that_fit(context, _PER_VERDICT)]
    if not places:
        return SupportCheck({}, {})
    needed = _FRAME_TOKENS + _PER_VERDICT * len(places)
    values = {"characters": _QUOTE_CHARS if limited else None}
    left = PROMPTS.room(context, needed + REPAIR_TOKENS, "support", sentences="", **values)
    listing, cut = _sentences_with_passages(sentences, places, passages, left)
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
    references, whatever the model made of them; one that comes back empty stays. characters:
    longest sentence, None for no limit.
    """
    before = tuple(sentences)
    per_sentence = _PER_VERDICT + (characters or int(_LONGEST * _CHARS_PER_TOKEN)) // 3
    places = unsupported[: _answers_that_fit(context, per_sentence)]
    if not places:
        return Revision(before)
    needed = _FRAME_TOKENS + per_sentence * len(places)
    values = {"characters": characters, "example": next(iter(passages), "R1P1")}
    left = PROMPTS.room(context, needed + REPAIR_TOKENS, "revise", sentences="", **values)
    listing, cut = _sentences_with_passages(sentences, places, passages, left)
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
    left: int,
) -> tuple[str, bool]:
    """The sentences at these places with their passages, each cut to its share of the room; and
    whether any was.
    """
    names = [_passages_to_show(sentences[place - 1], passages) for place in places]
    texts = [f"Sentence {place}: {sentences[place - 1].text}" for place in places]
    count = max(sum(map(len, names)), 1)
    share = max((left - sum(map(count_tokens, texts)) - 2 * len(texts)) // count, _FEWEST_TOKENS)
    lines = {name: passages[name].line(share) for some in names for name in some}
    parts = [
        "\n".join([text, *(lines[name] for name in some)])
        for text, some in zip(texts, names, strict=True)
    ]
    return "\n\n".join(parts), any(line != passages[name].line() for name, line in lines.items())


def _passages_to_show(sentence: TiedSentence, passages: Mapping[str, NamedPassage]) -> list[str]:
    """The sentence's own passages; where it names none of a work that it cites, the first one of
    that work.
    """
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
    names = names_field(None if most is None else _MOST_PASSAGES)
    revision = make_form("Revision", sentence=int, text=at_most(str, characters), passages=names)
    return make_form("Revisions", sentences=at_most(list[revision], most))  # type: ignore[valid-type]
