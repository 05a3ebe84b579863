"""Compare the authors that an entry of a bibliography names with those of a paper."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pipeline.identity.people import SpelledName, given_initials, may_be_same, spelled_names

_COLLECTIVE = re.compile(
    r"\b(?:collaboration|consortium|team|group|committee|project|organi[sz]ation|institute"
    r"|foundation|initiative|community|network|ai)\b",
    re.IGNORECASE,
)
# Given names that begin with other letters are those of other people where at least so many of the
# names, and half of them, do: a single one may be a nickname or another transliteration.
_FEWEST_OTHER_GIVEN_NAMES = 2


class AuthorComparison(NamedTuple):
    """How an entry's authors agree with a paper's.

    are_others: the first one, and three quarters of all, are not among the paper's. has_unknown:
    one of them is not among the paper's. has_other: has_unknown, or the first ones differ, or most
    given names begin with other letters. missing: the paper's authors that the entry leaves out,
    though it does not end in "and others". is_reordered: the same names in another order.
    """

    are_others: bool = False
    has_unknown: bool = False
    has_other: bool = False
    missing: tuple[str, ...] = ()
    is_reordered: bool = False


def compare_authors(
    names: Sequence[str], authors: Sequence[str], *, is_whole: bool
) -> AuthorComparison:
    """Compare names of an entry with the authors of a paper.

    is_whole: whether the entry means to name all of them. Without names of either, nothing differs.
    """
    ours, theirs = spelled_names(names), spelled_names(authors)
    if not ours or not theirs:
        return AuthorComparison()
    known = sum(_is_among(person, theirs) for person in ours)
    is_first = may_be_same(ours[0], theirs[0])
    has_unknown = known < len(ours)
    has_other = has_unknown or not is_first or _other_given_names(ours, theirs)
    missing = list[str]()
    if is_whole and not any(map(_is_collective, (*names, *authors))):
        missing = [person.name for person in theirs if not _is_among(person, ours)]
    following = iter(theirs)
    is_in_order = all(_is_among(person, following) for person in ours)
    return AuthorComparison(
        are_others=not is_first and 4 * known <= len(ours),
        has_unknown=has_unknown,
        has_other=has_other,
        missing=tuple(missing),
        is_reordered=not has_other and not is_in_order,
    )


def _is_collective(name: str) -> bool:
    return _COLLECTIVE.search(name) is not None or " " not in name.strip()


def _is_among(person: SpelledName, people: Iterable[SpelledName]) -> bool:
    """Whether one of some people may be this one; an iterator is left behind that one."""
    return any(may_be_same(person, other) for other in people)


def _other_given_names(names: Sequence[SpelledName], authors: Sequence[SpelledName]) -> bool:
    """Whether most names have a surname of the paper's authors, and given names of none of them."""
    compared = others = 0
    for person in names:
        ours = given_initials(person.name, person.surname)
        namesakes = [
            given_initials(author.name, person.surname)
            for author in authors
            if person.surname & author.words
        ]
        if ours and namesakes and all(namesakes):
            compared += 1
            others += all(ours.isdisjoint(theirs) for theirs in namesakes)
    return others >= _FEWEST_OTHER_GIVEN_NAMES and 2 * others >= compared
