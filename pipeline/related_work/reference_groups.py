"""Groups of references that a section discusses together, formed by a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pipeline.llm.client import REPAIR_TOKENS, LlmClient
from pipeline.llm.context import count_tokens, fit
from pipeline.llm.messages import LlmAnswerError, Spent
from pipeline.llm.structured import make_form
from pipeline.related_work.prompt_files import PROMPTS, at_most
from pipeline.settings import Settings
from pipeline.text import one_line

_GROUP_CHARS = 80
_OTHERS = "Other works"
# A group with its name takes some 40 tokens as JSON, a number in it 3.
_PER_GROUP, _PER_REFERENCE, _GROUPS_FRAME = 48, 4, 32
# The groups take at most this part of the context.
_GROUPS_SHARE = 4


@dataclass(frozen=True, slots=True)
class ReferenceGroup:
    """Works that are discussed together: a name for what they share, and their numbers in order."""

    name: str
    references: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Grouping:
    """All references, each in one group; and the faults of the model's own groups."""

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
    room = PROMPTS.room(
        context, needed + REPAIR_TOKENS, "group", target="", references="", **values
    )
    lines = fit(references, max(room * 2 // 3, room - count_tokens(target)))
    about = fit(target, room - count_tokens(lines.text))
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
    decoding ends; None for no bounds.
    """
    name = at_most(str, None if count is None else _GROUP_CHARS)
    group = make_form("Group", name=name, references=at_most(list[int], count))
    groups = at_most(list[group], None if count is None else most_groups(count))  # type: ignore[valid-type]
    return make_form("Groups", groups=groups)
