"""What `chatcite_grounded` knows before it writes: key elements with their passages, and references
in groups.

A passage is named for a model by its reference and place, R3P12: short enough to be copied without
a slip, unlike an id of 36 characters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

from pydantic import BaseModel

from pipeline.llm.client import REPAIR_TOKENS, LlmAnswerError, LlmClient, Spent
from pipeline.llm.context import count_tokens, fit
from pipeline.llm.structured import make_form
from pipeline.related_work.key_elements import (
    ELEMENT_NAMES,
    KeyElements,
    ask_for_elements,
    element_characters,
    elements_of,
    shorten_all,
)
from pipeline.related_work.prompt_files import (
    PROMPTS,
    answer_length,
    at_most,
    unnumbered,
)
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

_GROUP_CHARS = 80
_OTHERS = "Other works"
# A group with its name takes some 40 tokens as JSON, a number in it 3.
_PER_GROUP, _PER_REFERENCE, _GROUPS_FRAME = 48, 4, 32
# What the groups may take of a context at most, in parts of it.
_GROUPS_SHARE = 4


@dataclass(frozen=True, slots=True)
class NamedPassage(ReferencePassage):
    """A passage with the name by which a model knows it, R3P12."""

    name: str

    def line(self, tokens: int | None = None) -> str:
        text = unnumbered(one_line(self.text))
        return f"{self.name}: {text if tokens is None else fit(text, tokens).text}"


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of one reference: its key elements, and the passages that support them, the
    first named first.
    """

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
    left = PROMPTS.room(
        settings.llm_context,
        length.room + REPAIR_TOKENS,
        "evidence",
        content="",
        described=False,
        **values,
    )
    shown, cut = passages_that_fit(named, left)
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
    """The passages of a reference: those of the corpus, else the paragraphs of what there is of
    it.
    """
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
    """As many passages from the first on as fit, the first cut where it does not; and whether any
    is left out.
    """
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
    """Names of passages in what a model wrote for them, each once; a text without a name stays as
    it is, to be counted.
    """
    return tuple(
        dict.fromkeys(
            names[0] if (names := _NAME.findall(text.upper())) else text for text in texts
        )
    )


def names_field(most: int | None) -> Any:
    """The type of a field for at most so many names of passages; None for no limit."""
    return at_most(list[at_most(str, None if most is None else NAME_CHARS)], most)  # type: ignore[misc]


@cache
def evidence_model(characters: int | None) -> type[BaseModel]:
    """The form of the answers; `characters` bounds it, so that a small model under constrained
    decoding comes to an end.
    """
    names = names_field(None if characters is None else _PER_ANSWER)
    element = make_form("Element", answer=at_most(str, characters), passages=names)
    return make_form("Evidence", **dict.fromkeys(ELEMENT_NAMES, element))


# --- groups
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReferenceGroup:
    """Works that are discussed together: what they share, and their numbers in order."""

    name: str
    references: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Grouping:
    """All references, each in one group; and what was wrong with the model's own groups."""

    groups: tuple[ReferenceGroup, ...]
    spent: Spent = field(default_factory=Spent)
    dropped: tuple[int, ...] = ()
    """Numbers that no reference has."""
    repeated: tuple[int, ...] = ()
    """References named again; the first place counts."""
    added: tuple[int, ...] = ()
    """References that were in no group; a last group has them."""
    failure: str | None = None
    cut: bool = False
    """Whether target or references were cut to fit the context."""

    def order(self) -> list[int]:
        """All references in the order of the groups."""
        return [number for group in self.groups for number in group.references]

    def text(self) -> str:
        return "\n".join(
            f"{group.name}: {', '.join(f'[Reference {number}]' for number in group.references)}"
            for group in self.groups
        )

    def trace(self) -> dict[str, Any]:
        groups = [
            {"name": group.name, "references": list(group.references)} for group in self.groups
        ]
        faults = {
            "dropped": list(self.dropped),
            "repeated": list(self.repeated),
            "added": list(self.added),
        }
        return {"groups": groups, **faults, "failure": self.failure, "cut": self.cut}


async def group_references(
    client: LlmClient, target: str, references: str, count: int, settings: Settings
) -> Grouping:
    """The references 1 to `count` in groups, at temperature 0; one reference alone is a group,
    without a call.

    `references`: a line on each. A grouping that cannot be read leaves all references in one group,
    in their order.
    """
    context, limited = settings.llm_context, bool(settings.draft_tokens)
    if count == 1:
        return Grouping((ReferenceGroup(_OTHERS, (1,)),))
    needed = min(
        _GROUPS_FRAME + _PER_GROUP * most_groups(count) + _PER_REFERENCE * count,
        context // _GROUPS_SHARE,
    )
    values = {
        "count": count,
        "most": most_groups(count) if limited else None,
        "characters": _GROUP_CHARS if limited else None,
    }
    left = PROMPTS.room(
        context, needed + REPAIR_TOKENS, "group", target="", references="", **values
    )
    lines = fit(references, max(left * 2 // 3, left - count_tokens(target)))
    about = fit(target, left - count_tokens(lines.text))
    cut = lines.cut or about.cut
    messages = PROMPTS.messages("group", target=about.text, references=lines.text, **values)
    try:
        answer = await client.answer(
            messages,
            grouping_model(count if limited else None),
            max_tokens=needed if limited else None,
        )
    except LlmAnswerError as error:
        return Grouping(
            (ReferenceGroup(_OTHERS, tuple(range(1, count + 1))),),
            error.spent,
            failure=str(error),
            cut=cut,
        )
    groups = [
        ReferenceGroup(one_line(group.name), tuple(group.references))
        for group in answer.value.groups
    ]
    return replace(complete_groups(groups, count), spent=answer.spent, cut=cut)


def most_groups(count: int) -> int:
    """More groups than half of the references and two are not useful."""
    return count // 2 + 2


def complete_groups(groups: Sequence[ReferenceGroup], count: int) -> Grouping:
    """The groups with every reference from 1 to `count` in exactly one of them."""
    seen: list[int] = []
    dropped: list[int] = []
    repeated: list[int] = []
    complete: list[ReferenceGroup] = []
    for group in groups:
        members: list[int] = []
        for number in group.references:
            if not 1 <= number <= count:
                dropped.append(number)
            elif number in seen:
                repeated.append(number)
            else:
                members.append(number)
                seen.append(number)
        if members:
            complete.append(ReferenceGroup(group.name or _OTHERS, tuple(members)))
    added = tuple(number for number in range(1, count + 1) if number not in seen)
    if added:
        complete.append(ReferenceGroup(_OTHERS, added))
    return Grouping(
        tuple(complete),
        dropped=tuple(dict.fromkeys(dropped)),
        repeated=tuple(dict.fromkeys(repeated)),
        added=added,
    )


def grouping_model(count: int | None) -> type[Any]:
    """The form of a grouping of so many references, bounded so that a small model under constrained
    decoding comes to an end; None for no bounds.
    """
    name = at_most(str, None if count is None else _GROUP_CHARS)
    group = make_form("Group", name=name, references=at_most(list[int], count))
    groups = at_most(list[group], None if count is None else most_groups(count))  # type: ignore[valid-type]
    return make_form("Groups", groups=groups)
