"""A grounded draft: sentences with the references they cite and the passages that support them.

The form of the model's answer, its reader, and the repair of lost references.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any

from pydantic import BaseModel, Field

from pipeline.llm.structured import make_form
from pipeline.related_work.evidence import names_field, names_in
from pipeline.related_work.prompt_files import AnswerLength, at_most
from pipeline.related_work.summary import cited_numbers, normalize
from pipeline.text import one_line

# A sentence takes a quarter of the draft's tokens at most, between 60, fewer of which hold no
# comparison, and 128.
_SHARE_OF_DRAFT, _SHORTEST, _LONGEST = 4, 60, 128
_CHARS_PER_TOKEN = 4.5
LONGEST_CHARS = int(_LONGEST * _CHARS_PER_TOKEN)
# Beside its text a sentence costs its frame and names as JSON, about as much again.
JSON_FACTOR = 2
PASSAGES_PER_SENTENCE = 4
# Numbers of references that a sentence may name beyond those there are: they are read and counted.
_SPARE = 4
_STOP = re.compile(r"[.!?][\"'”’)\]]*$")


@dataclass(frozen=True, slots=True)
class TiedSentence:
    """One sentence, with `[Reference i]` for each of its references, and names of its passages."""

    text: str
    references: tuple[int, ...]
    passages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Faults:
    """References that a draft fails to cite or must not cite, and the count of unknown passages."""

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
    """The reason why the answer could not be read; the draft is then the one before it."""

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
    """A sentence without citations that are not allowed, the numbers of these, and how many names
    are no passage's.
    """
    text, _ = normalize(one_line(item.text))
    named = [*cited_numbers(text), *item.references]
    numbers = tuple(number for number in dict.fromkeys(named) if number in required)
    names = names_in(item.passages)
    existing = tuple(name for name in names if name in passages)
    return (
        TiedSentence(cite(text, numbers), numbers, existing),
        set(named) - set(required),
        len(names) - len(existing),
    )


def cite(text: str, numbers: Sequence[int]) -> str:
    """The text citing exactly these: others are removed, missing ones go before the full stop."""
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
    sentences = list(draft.sentences)
    plain_numbers = []
    for number in draft.faults.missing:
        if not missing_references(sentences, [number]):
            continue
        earlier = next((sentence for sentence in before if number in sentence.references), None)
        sentences.append(earlier or plain[number])
        if earlier is None:
            plain_numbers.append(number)
    return (
        TiedDraft(tuple(sentences), Faults((), (), draft.faults.unknown_passages), draft.failure),
        plain_numbers,
    )


def section_text(sentences: Sequence[TiedSentence], groups: Sequence[Sequence[int]]) -> str:
    """The sentences as text, with a new paragraph where a sentence cites another group."""
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
        passages=names_field(PASSAGES_PER_SENTENCE if limited else None),
    )
    sentences = at_most(list[sentence], most_sentences(references) if limited else None)  # type: ignore[valid-type]
    return make_form("TiedDraft", sentences=Annotated[sentences, Field(min_length=1)])
