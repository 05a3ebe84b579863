"""Key elements of a reference with the passages that each rests on, and the passages' short names.

A passage is named for a model by its reference and place, R3P12: short enough to be written without a slip, where an
id of 36 signs is not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, create_model

from pipeline.llm.client import REPAIR_TOKENS, LlmAnswerError, LlmClient, Spent
from pipeline.llm.context import count_tokens, fit
from pipeline.llm.structured import AtMost
from pipeline.related_work.key_elements import ELEMENT_NAMES, KeyElements, ask_for_elements, elements_of
from pipeline.related_work.prompting import Passage, Reference, Task, room, unnumbered

# Of a paper no more passages are shown to whoever writes or judges: a related-work section says little of each.
MOST_PASSAGES = 6
# An answer of one to three sentences rests on as many.
_PER_ANSWER = 3
_CHARS_PER_TOKEN = 3.5
# A name is 5 to 9 signs, some 6 tokens; an answer's frame with three of them takes about 40.
_FRAME_TOKENS, _FRAME_PER_ANSWER = 60, 48
NAME_CHARS = 12
_NAME = re.compile(r"R[0-9]{1,4}P[0-9]{1,4}")


@dataclass(frozen=True, slots=True)
class Named:
    """A passage under the name that a model is shown, R3P12."""

    name: str
    passage: Passage

    def line(self, tokens: int | None = None) -> str:
        text = unnumbered(" ".join(self.passage.text.split()))
        return f"{self.name}: {text if tokens is None else fit(text, tokens).text}"


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of one reference: its key elements, and the passages that they rest on, best known first."""

    reference: Reference
    elements: KeyElements
    passages: tuple[Named, ...]
    rests_on: Mapping[str, tuple[str, ...]]
    """Key element → names of the passages that it rests on."""
    unknown: int
    """Names that were given and not shown: dropped."""
    cut: bool
    """Whether the model was not shown all passages."""
    spent: Spent
    failure: str | None = None

    def trace(self) -> dict[str, Any]:
        return {
            "reference": self.reference.number,
            "rests_on": {name: list(names) for name, names in self.rests_on.items()},
            "unknown": self.unknown,
            "cut": self.cut,
            "failure": self.failure,
        }


async def find_evidence(client: LlmClient, task: Task, place: int, *, context: int, element_tokens: int) -> Evidence:
    """The seven answers on the reference at `place` with their passages, at temperature 0.

    Of a work known by its bibliography item alone nothing is asked: the item is its one passage.
    """
    reference = task.references[place]
    named = name_passages(reference.number, passages_of(task, place))
    if reference.source == "item":
        return Evidence(reference, KeyElements(), named[:1], {}, 0, False, Spent())
    characters = int(element_tokens * _CHARS_PER_TOKEN)
    frame = {
        "fields": ELEMENT_NAMES,
        "characters": characters,
        "most": _PER_ANSWER,
        "example": f"R{reference.number}P1",
    }
    longest = len(ELEMENT_NAMES) * (element_tokens + _FRAME_PER_ANSWER) + _FRAME_TOKENS
    shown, cut = shown_in(
        named, room(context, longest + REPAIR_TOKENS, "evidence", content="", described=False, **frame)
    )
    content = "\n\n".join(each.line() for each in shown)
    ask = partial(client.answer, schema=evidence_model(characters), max_tokens=longest)
    try:
        answer = await ask_for_elements(ask, _texts, "evidence", content=content, **frame)
    except LlmAnswerError as error:
        return Evidence(reference, KeyElements(), shown[:1], {}, 0, cut, error.spent, str(error))
    return _read(reference, answer.value, shown, cut, answer.spent)


def passages_of(task: Task, place: int) -> tuple[Passage, ...]:
    """The passages of the reference at `place`: those of the corpus, else the paragraphs of what there is of it."""
    number = task.references[place].number
    kept = task.passages.get(number, ())
    if kept:
        return kept
    paragraphs = [part.strip() for part in task.contents[place].split("\n\n")]
    told = [part for part in paragraphs if part and not part.startswith("#")] or paragraphs[:1]
    return tuple(Passage(f"{task.task_id}/{number}/{ordinal}", text) for ordinal, text in enumerate(told, 1))


def name_passages(number: int, passages: Sequence[Passage]) -> tuple[Named, ...]:
    """The passages under names of their own, in order."""
    return tuple(Named(f"R{number}P{ordinal}", passage) for ordinal, passage in enumerate(passages, 1))


def shown_in(named: Sequence[Named], tokens: int) -> tuple[tuple[Named, ...], bool]:
    """As many passages from the first on as fit, the first cut where it does not; and whether any is left out."""
    shown: list[Named] = []
    for each in named:
        tokens -= count_tokens(each.line()) + 1
        if tokens < 0:
            break
        shown.append(each)
    if shown or not named:
        return tuple(shown), len(shown) < len(named)
    first = named[0]
    cut = fit(first.passage.text, max(tokens + count_tokens(first.line()), 1)).text
    return (Named(first.name, Passage(first.passage.passage_id, cut)),), True


def _read(reference: Reference, value: BaseModel, shown: Sequence[Named], cut: bool, cost: Spent) -> Evidence:
    known = {each.name: each for each in shown}
    given = {name: named_in(getattr(value, name).passages) for name in ELEMENT_NAMES}
    rests_on = {name: tuple(each for each in names if each in known) for name, names in given.items()}
    unknown = sum(len(names) for names in given.values()) - sum(len(names) for names in rests_on.values())
    order = list(dict.fromkeys(each for names in rests_on.values() for each in names)) or [
        each.name for each in shown[:1]
    ]
    passages = tuple(known[name] for name in order[:MOST_PASSAGES])
    return Evidence(reference, elements_of(_texts(value)), passages, rests_on, unknown, cut, cost)


def _texts(value: BaseModel) -> dict[str, str]:
    return {name: " ".join(getattr(value, name).answer.split()) for name in ELEMENT_NAMES}


def named_in(given: Sequence[str]) -> tuple[str, ...]:
    """Names of passages in what a model gave for them, each once; what is no name stays as it is, to be counted."""
    return tuple(dict.fromkeys(found[0] if (found := _NAME.findall(each.upper())) else each for each in given))


@cache
def evidence_model(characters: int) -> type[BaseModel]:
    """The form of the answers, bounded so that a small model under constrained decoding comes to an end."""
    element = create_model(
        "Element",
        __config__=ConfigDict(extra="forbid"),
        answer=(Annotated[str, AtMost(characters)], ...),
        passages=(Annotated[list[Annotated[str, AtMost(NAME_CHARS)]], AtMost(_PER_ANSWER)], ...),
    )
    fields: dict[str, Any] = dict.fromkeys(ELEMENT_NAMES, (element, ...))
    return create_model("Evidence", __config__=ConfigDict(extra="forbid"), **fields)
