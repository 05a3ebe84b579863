"""Grouping references before anything is written, so that works on the same matter stand together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, create_model

from pipeline.llm.client import REPAIR_TOKENS, LlmAnswerError, LlmClient, Spent
from pipeline.llm.context import count_tokens, fit
from pipeline.llm.structured import AtMost
from pipeline.related_work.prompting import NOTHING, PROMPTS, room

_NAME_CHARS = 80
_OTHERS = "Other works"
# A group with its name takes some 40 tokens as JSON, a number in it 3; two groups more than half the references is
# more than anybody wants.
_PER_GROUP, _PER_REFERENCE, _FRAME_TOKENS = 48, 4, 32
# What an answer may take of a context at most, in parts of it.
_SHARE = 4


@dataclass(frozen=True, slots=True)
class Group:
    """Works that are told of together: what they share, and their numbers in order."""

    name: str
    references: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Grouping:
    """All references, each in one group; and what had to be mended for that."""

    groups: tuple[Group, ...]
    spent: Spent = NOTHING
    dropped: tuple[int, ...] = ()
    """Numbers that no reference has."""
    repeated: tuple[int, ...] = ()
    """References named again; the first place counts."""
    added: tuple[int, ...] = ()
    """References that were in no group, put into one at the end."""
    failure: str | None = None
    cut: bool = False
    """Whether the model was not told all that is known of the target and the references."""

    def order(self) -> list[int]:
        """All references in the order in which they are told of."""
        return [number for group in self.groups for number in group.references]

    def text(self) -> str:
        return "\n".join(f"{group.name}: {_listed(group.references)}" for group in self.groups)

    def trace(self) -> dict[str, Any]:
        groups = [{"name": group.name, "references": list(group.references)} for group in self.groups]
        mended = {"dropped": list(self.dropped), "repeated": list(self.repeated), "added": list(self.added)}
        return {"groups": groups, **mended, "failure": self.failure, "cut": self.cut}


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(f"[Reference {number}]" for number in numbers)


async def group(client: LlmClient, target: str, references: str, count: int, context: int) -> Grouping:
    """The references 1 to `count` in groups, at temperature 0; one reference alone is a group, and nothing is asked.

    `references`: a line on each. A grouping that cannot be read leaves them in one group, in the order given.
    """
    if count == 1:
        return Grouping((Group(_OTHERS, (1,)),))
    wanted = _FRAME_TOKENS + _PER_GROUP * most_groups(count) + _PER_REFERENCE * count
    longest = min(wanted, context // _SHARE)
    frame = {"count": count, "most": most_groups(count), "characters": _NAME_CHARS}
    left = room(context, longest + REPAIR_TOKENS, "group", target="", references="", **frame)
    known = fit(references, max(left * 2 // 3, left - count_tokens(target)))
    about = fit(target, left - count_tokens(known.text))
    cut = known.cut or about.cut
    messages = PROMPTS.messages("group", target=about.text, references=known.text, **frame)
    try:
        answer = await client.answer(messages, grouping_model(count), max_tokens=longest)
    except LlmAnswerError as error:
        return Grouping((Group(_OTHERS, tuple(range(1, count + 1))),), error.spent, failure=str(error), cut=cut)
    given = [Group(_name(each.name), tuple(each.references)) for each in answer.value.groups]  # type: ignore[attr-defined]
    return replace(mended(given, count, answer.spent), cut=cut)


def _name(given: str) -> str:
    return " ".join(given.split())[:_NAME_CHARS]


def most_groups(count: int) -> int:
    return count // 2 + 2


def mended(given: Sequence[Group], count: int, cost: Spent = NOTHING) -> Grouping:
    """The groups with every reference in exactly one of them."""
    seen: list[int] = []
    dropped: list[int] = []
    repeated: list[int] = []
    groups: list[Group] = []
    for each in given:
        kept: list[int] = []
        for number in each.references:
            fault = dropped if not 1 <= number <= count else repeated if number in seen or number in kept else None
            (kept if fault is None else fault).append(number)
        seen += kept
        if kept:
            groups.append(Group(each.name or _OTHERS, tuple(kept)))
    added = tuple(number for number in range(1, count + 1) if number not in seen)
    if added:
        groups.append(Group(_OTHERS, added))
    return Grouping(tuple(groups), cost, tuple(dict.fromkeys(dropped)), tuple(dict.fromkeys(repeated)), added)


def grouping_model(count: int) -> type[BaseModel]:
    """The form of a grouping, bounded so that a small model under constrained decoding comes to an end."""
    one = create_model(
        "Group",
        __config__=ConfigDict(extra="forbid"),
        name=(Annotated[str, AtMost(_NAME_CHARS)], ...),
        references=(Annotated[list[int], AtMost(count)], ...),
    )
    some = Annotated[list[one], AtMost(most_groups(count))]  # type: ignore[valid-type]
    return create_model("Groups", __config__=ConfigDict(extra="forbid"), groups=(some, ...))
