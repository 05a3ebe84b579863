"""Compare the authors that an entry of a bibliography names with those of a paper."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from drafts.lists import word_list
from pipeline.identity.titles import title_words

_COLLECTIVE = re.compile(
    r"\b(?:collaboration|consortium|team|group|committee|project|organi[sz]ation|institute"
    r"|foundation|initiative|community|network|ai)\b",
    re.IGNORECASE,
)
# Given names that begin with other letters are those of other people where at least so many of the
# names, and half of them, do: a single one may be a nickname or another transliteration.
_FEWEST_OTHER_GIVEN_NAMES = 2
_UMLAUTS = str.maketrans({
    "ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa", "đ": "dj", "ð": "d", "þ": "th",
})  # fmt: skip
_OTHERS = re.compile(r"(?:et\.? )?al\.?|others", re.IGNORECASE)
_BETWEEN_WORDS = re.compile(r"[\s.]+")
_HYPHENS = re.compile(r"[-‐–'’]")
# "Al" of Al-Rfou is no surname of its own, "Smith" of Smith-Jones is one.
_LONG_PART = 4


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
    ours, theirs = _spelled_names(names), _spelled_names(authors)
    if not ours or not theirs:
        return AuthorComparison()
    known = sum(_is_among(person, theirs) for person in ours)
    is_first = _may_be_same(ours[0], theirs[0])
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


def surname(name: str) -> str | None:
    """The last word of a name that is no suffix, folded; None for a single letter or nothing."""
    words = [word for word in title_words(name) if not _is_suffix(word)]
    return words[-1] if words and len(words[-1]) > 1 else None


def _is_suffix(word: str) -> bool:
    return word in word_list("name_suffixes")


def is_others(name: str) -> bool:
    """Whether a member of a list stands for the names that it leaves out: "et al.", "others"."""
    return _OTHERS.fullmatch(name) is not None


def _is_collective(name: str) -> bool:
    return _COLLECTIVE.search(name) is not None or " " not in name.strip()


def _is_among(person: _SpelledName, people: Iterable[_SpelledName]) -> bool:
    """Whether one of some people may be this one; an iterator is left behind that one."""
    return any(_may_be_same(person, other) for other in people)


def _other_given_names(names: Sequence[_SpelledName], authors: Sequence[_SpelledName]) -> bool:
    """Whether most names have a surname of the paper's authors, and given names of none of them."""
    compared = others = 0
    for person in names:
        ours = _given_initials(person.name, person.surname)
        namesakes = [
            _given_initials(author.name, person.surname)
            for author in authors
            if person.surname & author.words
        ]
        if ours and namesakes and all(namesakes):
            compared += 1
            others += all(ours.isdisjoint(theirs) for theirs in namesakes)
    return others >= _FEWEST_OTHER_GIVEN_NAMES and 2 * others >= compared


def _spellings(word: str) -> set[str]:
    """A word of a name, folded, and as it is spelt without umlauts: Köhler, Kohler, Koehler."""
    return {*title_words(word), *title_words(word.lower().translate(_UMLAUTS))}


class _SpelledName(NamedTuple):
    """A name: the spellings of its surname, and those of all its words of two letters or more."""

    name: str
    surname: set[str]
    words: set[str]


def _spelled_names(names: Iterable[str]) -> list[_SpelledName]:
    """The names that have a surname, with their spellings."""
    return [
        _SpelledName(name, surname, {word for word in _spellings(name) if len(word) > 1})
        for name in names
        if (surname := _surname_spellings(name))
    ]


def _surname_spellings(name: str) -> set[str]:
    """The spellings of the last word that is no initial and no suffix; of "Smith-Jones" both,
    and the two as one word.
    """
    words = [
        word
        for word in _BETWEEN_WORDS.split(name)
        if any(len(part) > 1 and not _is_suffix(part) for part in title_words(word))
    ]
    if not words:
        return set()
    *first, last = _HYPHENS.split(words[-1])
    long_ones = [part for part in first if len(part) >= _LONG_PART]
    joined = _HYPHENS.sub("", words[-1])
    spellings = set[str]().union(*map(_spellings, (last, joined, *long_ones)))
    return spellings or _spellings(words[-1])


def _may_be_same(person: _SpelledName, other: _SpelledName) -> bool:
    """Whether two names may be one person's: by a surname, or by two words of the names."""
    return bool(
        person.surname & other.words
        or other.surname & person.words
        or len(person.words & other.words) > 1
    )


def _given_initials(name: str, surname: set[str]) -> set[str]:
    """The first letters of the words of a name that are no surname."""
    return {word[0] for word in title_words(name) if word not in surname and not _is_suffix(word)}
