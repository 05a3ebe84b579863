"""A section as sentences tied to references and passages: the form of a draft, how it is read, and what it lacks."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, create_model

from pipeline.llm.structured import AtMost
from pipeline.related_work.evidence import NAME_CHARS, named_in
from pipeline.related_work.summary import cited_numbers, normalise

# A sentence that needs more than a quarter of the draft's tokens, or more than 128, is none; fewer than 60 hold no
# comparison.
_SHARE_OF_DRAFT, _SHORTEST, _LONGEST = 4, 60, 128
_CHARS_PER_TOKEN = 4.5
# Beside its text a sentence costs its frame and names as JSON, about as much again.
_JSON_FACTOR = 2
_MOST_PASSAGES = 4
# A sentence that cites works there are not is read, and told; one that goes on and on is not.
_SPARE = 4
_STOP = re.compile(r"[.!?][\"'”’)\]]*$")


@dataclass(frozen=True, slots=True)
class Tied:
    """One sentence, `[Reference i]` in its text for each of its references, and the names of its passages."""

    text: str
    references: tuple[int, ...]
    passages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Faults:
    """What a draft lacks or has too much, and names that were given to no passage."""

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
    """A draft. Citations out of range are taken out of its sentences, and stay told in `faults`."""

    sentences: tuple[Tied, ...]
    faults: Faults
    failure: str | None = None
    """Why it is only the draft before it: the answer could not be read."""

    def lines(self) -> str:
        """The sentences as a prompt shows them, each with its passages."""
        return "\n".join(f"{each.text} ({', '.join(each.passages) or 'no passage'})" for each in self.sentences)


def read_draft(answer: BaseModel, required: Sequence[int], passages: Collection[str]) -> TiedDraft:
    """The draft of an answer in the form of `draft_model`. `required`: numbers that it must cite, and no others."""
    given = [_read(each, required, passages) for each in answer.sentences]  # type: ignore[attr-defined]
    sentences = tuple(sentence for sentence, _, _ in given if sentence.text)
    wrong = tuple(sorted({number for _, numbers, _ in given for number in numbers}))
    unknown = sum(count for _, _, count in given)
    return TiedDraft(sentences, Faults(missing(sentences, required), wrong, unknown))


def missing(sentences: Iterable[Tied], required: Iterable[int]) -> tuple[int, ...]:
    """The references that no sentence cites."""
    cited = {number for sentence in sentences for number in sentence.references}
    return tuple(number for number in required if number not in cited)


def _read(given: Any, required: Sequence[int], passages: Collection[str]) -> tuple[Tied, set[int], int]:
    """A sentence as it may stand, the numbers that it cited and may not, and how many names are no passage's."""
    text, _ = normalise(" ".join(given.text.split()))
    named = [*cited_numbers(text), *given.references]
    kept = tuple(number for number in dict.fromkeys(named) if number in required)
    names = named_in(given.passages)
    known = tuple(name for name in names if name in passages)
    sentence = Tied(cite(text, kept), kept, known)
    return sentence, set(named) - set(required), len(names) - len(known)


def cite(text: str, numbers: Sequence[int]) -> str:
    """The text citing these and no others: other marks are taken out, and those that lack go before the full stop."""
    for number in set(cited_numbers(text)) - set(numbers):
        text = text.replace(f"[Reference {number}]", "")
    text = re.sub(r" +([.,;:)])", r"\1", re.sub(r" {2,}", " ", text)).strip()
    lacking = " ".join(f"[Reference {number}]" for number in numbers if number not in cited_numbers(text))
    if not text or not lacking:
        return text
    stop = _STOP.search(text)
    return f"{text[: stop.start()]} {lacking}{stop.group()}" if stop else f"{text} {lacking}"


def patched(draft: TiedDraft, before: Sequence[Tied], made: Mapping[int, Tied]) -> tuple[TiedDraft, list[int]]:
    """The draft with a sentence for each reference that it misses, and which of these were `made`, not taken over.

    A sentence of the draft before that cited it is appended, cited numbers and all, if there is one; else the one made
    of its key elements.
    """
    sentences, fresh = list(draft.sentences), []
    for number in draft.faults.missing:
        if number in {other for sentence in sentences for other in sentence.references}:
            continue
        held = next((sentence for sentence in before if number in sentence.references), None)
        sentences.append(held or made[number])
        if held is None:
            fresh.append(number)
    return TiedDraft(tuple(sentences), Faults((), (), draft.faults.unknown_passages), draft.failure), fresh


def section(sentences: Sequence[Tied], groups: Sequence[Sequence[int]]) -> str:
    """The sentences as text, a paragraph ending where the first reference of a sentence is of another group."""
    paragraphs: list[list[str]] = []
    at: int | None = None
    for sentence in sentences:
        here = next((place for place, group in enumerate(groups) if set(group) & set(sentence.references)), at)
        if not paragraphs or (at is not None and here != at):
            paragraphs.append([])
        paragraphs[-1].append(sentence.text)
        at = here
    return "\n\n".join(" ".join(paragraph) for paragraph in paragraphs)


def sentence_chars(draft_tokens: int) -> int:
    """Longest sentence of a draft, in characters."""
    return int(min(max(draft_tokens // _SHARE_OF_DRAFT, _SHORTEST), _LONGEST) * _CHARS_PER_TOKEN)


def answer_tokens(draft_tokens: int) -> int:
    """Longest answer that holds a draft of so many tokens."""
    return _JSON_FACTOR * draft_tokens


def most_sentences(references: int) -> int:
    """Sentences of a draft on so many references, at most."""
    return 2 * references + 2


@cache
def draft_model(references: int, characters: int) -> type[BaseModel]:
    """The form of a draft on so many references, bounded so that a small model under constrained decoding ends."""
    sentence = create_model(
        "TiedSentence",
        __config__=ConfigDict(extra="forbid"),
        text=(Annotated[str, AtMost(characters)], ...),
        references=(Annotated[list[int], AtMost(references + _SPARE)], ...),
        passages=names_field(),
    )
    some = Annotated[list[sentence], Field(min_length=1), AtMost(most_sentences(references))]  # type: ignore[valid-type]
    return create_model("TiedDraft", __config__=ConfigDict(extra="forbid"), sentences=(some, ...))


def names_field() -> Any:
    """A field for names of passages."""
    return (Annotated[list[Annotated[str, AtMost(NAME_CHARS)]], AtMost(_MOST_PASSAGES)], ...)
