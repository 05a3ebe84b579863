"""Key elements of references with the passages that support them, for `chatcite_grounded`.

A passage is named for a model by its reference and place, R3P12: short enough to be copied without
a slip, unlike an id of 36 characters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

from pydantic import BaseModel

from pipeline.llm.client import REPAIR_TOKENS, LlmClient
from pipeline.llm.context import count_tokens, fit
from pipeline.llm.messages import LlmAnswerError, Spent
from pipeline.llm.structured import make_form
from pipeline.related_work.key_elements import (
    ELEMENT_NAMES,
    KeyElements,
    ask_for_elements,
    element_characters,
    elements_of,
    shorten_all,
)
from pipeline.related_work.prompt_files import PROMPTS, answer_length, at_most, unnumbered
from pipeline.related_work.task import Reference, ReferencePassage, Task
from pipeline.settings import Settings
from pipeline.text import one_line

# Passages of a paper that go on to the writer and the judge: a related-work section says little
# about each paper.
MOST_PASSAGES = 6
# An answer of one to three sentences rests on as many passages.
_PER_ANSWER = 3
# A name is 5 to 9 characters, some 6 tokens; an answer's frame with three of them takes about 40.
_FRAME_TOKENS, _FRAME_PER_ANSWER = 60, 48
NAME_CHARS = 12
_NAME = re.compile(r"R[0-9]{1,4}P[0-9]{1,4}")


@dataclass(frozen=True, slots=True)
class NamedPassage(ReferencePassage):
    """A passage with the name by which a model knows it, R3P12."""

    name: str

    def line(self, tokens: int | None = None) -> str:
        text = unnumbered(one_line(self.text))
        return f"{self.name}: {text if tokens is None else fit(text, tokens).text}"


@dataclass(frozen=True, slots=True)
class Evidence:
    """The key elements of one reference and the passages that support them, as named."""

    reference: Reference
    elements: KeyElements
    passages: tuple[NamedPassage, ...]
    support: Mapping[str, tuple[str, ...]]
    """Key element → names of the passages that support it."""
    unknown: int
    """Names in the answer that are no passage's: dropped."""
    cut: bool
    """Whether the model was not shown all passages."""
    spent: Spent
    failure: str | None = None
    shortened: tuple[str, ...] = ()
    """Key elements that reached their longest, and were cut there."""

    def trace(self) -> dict[str, Any]:
        return {
            "reference": self.reference.number,
            "rests_on": {name: list(names) for name, names in self.support.items()},
            "unknown": self.unknown,
            "cut": self.cut,
            "failure": self.failure,
            "shortened": list(self.shortened),
        }


async def find_evidence(
    client: LlmClient, task: Task, reference: Reference, settings: Settings
) -> Evidence:
    """The seven answers on a reference of the task with their passages, at temperature 0.

    Of a work known by its bibliography item alone no call is made: the item is its one passage.
    """
    named = name_passages(reference.number, passages_of(task, reference))
    if reference.source == "item":
        return Evidence(reference, KeyElements(), named[:1], {}, 0, False, Spent())
    characters = element_characters(settings)
    values = {
        "fields": ELEMENT_NAMES,
        "characters": characters,
        "most": _PER_ANSWER,
        "example": f"R{reference.number}P1",
    }
    per_answer = settings.element_tokens + _FRAME_PER_ANSWER
    limit = len(ELEMENT_NAMES) * per_answer + _FRAME_TOKENS if settings.element_tokens else None
    length = answer_length(limit, settings.llm_context)
    room = PROMPTS.room(
        settings.llm_context,
        length.room + REPAIR_TOKENS,
        "evidence",
        content="",
        described=False,
        **values,
    )
    shown, cut = passages_that_fit(named, room)
    content = "\n\n".join(passage.line() for passage in shown)
    ask = partial(client.answer, schema=evidence_model(characters), max_tokens=length.limit)
    try:
        answer = await ask_for_elements(ask, _texts, "evidence", content=content, **values)
    except LlmAnswerError as error:
        return Evidence(reference, KeyElements(), shown[:1], {}, 0, cut, error.spent, str(error))
    return _read(
        Evidence(reference, KeyElements(), shown, {}, 0, cut, answer.spent),
        answer.value,
        characters,
    )


def passages_of(task: Task, reference: Reference) -> tuple[ReferencePassage, ...]:
    """The passages of a reference: those of the corpus, else the paragraphs of its text."""
    if reference.passages:
        return reference.passages
    paragraphs = [part.strip() for part in reference.text.split("\n\n")]
    texts = [part for part in paragraphs if part and not part.startswith("#")] or paragraphs[:1]
    return tuple(
        ReferencePassage(f"{task.task_id}/{reference.number}/{ordinal}", text)
        for ordinal, text in enumerate(texts, 1)
    )


def name_passages(number: int, passages: Sequence[ReferencePassage]) -> tuple[NamedPassage, ...]:
    """The passages of a reference under their names, in order."""
    return tuple(
        NamedPassage(passage.passage_id, passage.text, name=f"R{number}P{ordinal}")
        for ordinal, passage in enumerate(passages, 1)
    )


def passages_that_fit(
    named: Sequence[NamedPassage], tokens: int
) -> tuple[tuple[NamedPassage, ...], bool]:
    """The first passages that fit, the very first cut if needed; and whether any is left out."""
    shown: list[NamedPassage] = []
    for passage in named:
        tokens -= count_tokens(passage.line()) + 1
        if tokens < 0:
            break
        shown.append(passage)
    if shown or not named:
        return tuple(shown), len(shown) < len(named)
    first = named[0]
    cut = fit(first.text, max(tokens + count_tokens(first.line()), 1)).text
    return (replace(first, text=cut),), True


def _read(evidence: Evidence, value: BaseModel, characters: int | None) -> Evidence:
    """The evidence with the answers in `value`; its passages are those that were shown."""
    shown = {passage.name: passage for passage in evidence.passages}
    names = {element: names_in(getattr(value, element).passages) for element in ELEMENT_NAMES}
    support = {
        element: tuple(name for name in some if name in shown) for element, some in names.items()
    }
    unknown = sum(map(len, names.values())) - sum(map(len, support.values()))
    order = (
        list(dict.fromkeys(name for some in support.values() for name in some)) or list(shown)[:1]
    )
    texts, shortened = shorten_all(_texts(value), characters)
    return replace(
        evidence,
        elements=elements_of(texts),
        passages=tuple(shown[name] for name in order[:MOST_PASSAGES]),
        support=support,
        unknown=unknown,
        shortened=shortened,
    )


def _texts(value: BaseModel) -> dict[str, str]:
    return {name: one_line(getattr(value, name).answer) for name in ELEMENT_NAMES}


def names_in(texts: Sequence[str]) -> tuple[str, ...]:
    """Names of passages in a model's texts, each once; a text without one stays, to be counted."""
    matches = ((text, _NAME.search(text.upper())) for text in texts)
    return tuple(dict.fromkeys(match[0] if match else text for text, match in matches))


def names_field(most: int | None) -> Any:
    """The type of a field for at most so many names of passages; None for no limit."""
    return at_most(list[at_most(str, None if most is None else NAME_CHARS)], most)  # type: ignore[misc]


@cache
def evidence_model(characters: int | None) -> type[BaseModel]:
    """The form of the answers, bounded so that a small model under constrained decoding ends."""
    names = names_field(None if characters is None else _PER_ANSWER)
    element = make_form("Element", answer=at_most(str, characters), passages=names)
    return make_form("Evidence", **dict.fromkeys(ELEMENT_NAMES, element))
