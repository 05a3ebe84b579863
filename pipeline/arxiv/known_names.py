"""The authors of a paper as arXiv's metadata names them, found in what its page prints."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from pipeline.arxiv.person_names import LETTER, MOST_WORDS, without_titles
from pipeline.arxiv.titles import SUFFIXES, title_words

# A word as a name has it, without the digits of a mark behind it; its accent may be apart from it.
_TOKEN = re.compile(rf"(?:{LETTER}|[\u0300-\u036f])+")
# Where a page lost the space behind a name: "Ann LeeUniversity of X".
_STUCK = re.compile(r"(?<=[a-z])(?=[A-Z])")

Words = tuple[str, ...]
"""The words of a name, folded: see `_words`."""


class NamePlace(NamedTuple):
    """Where a text prints a name, by offsets: `name` is that of metadata."""

    start: int
    end: int
    name: str


class KnownNames:
    """The names of some people, looked up in other prints of them."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(dict.fromkeys(names))
        self._by_word: defaultdict[str, list[str]] = defaultdict(list)
        for name in self.names:
            words = _words(name)
            for word in {*words[:1], *words[-1:], "".join(words)}:
                self._by_word[word].append(name)

    def match(self, printed: str) -> str | None:
        """The name that a print stands for, or None."""
        words = _words(printed)
        return self._first(words, _same_words) or self._first(words, _same_person)

    def find(self, text: str) -> list[NamePlace]:
        """The names in a text, which may be in a row with nothing between: "Ann Lee Bob Roe"."""
        tokens = list(self._tokens(text))
        places: list[NamePlace] = []
        start = 0
        while start < len(tokens):
            words = tuple(word for _, _, word in tokens[start : start + MOST_WORDS])
            name, length = self._name_at_start(words)
            if name is not None:
                while length < len(words) and words[length] in SUFFIXES:
                    length += 1
                places.append(NamePlace(tokens[start][0], tokens[start + length - 1][1], name))
            start += length
        return places

    def _tokens(self, text: str) -> Iterator[tuple[int, int, str]]:
        """The words of a text as (start, end, folded); what is stuck to a name is apart from it."""
        for token in _TOKEN.finditer(text):
            start, end = token.span()
            word = "".join(title_words(token[0]))
            stuck = None if word in self._by_word else _STUCK.search(text, start, end)
            if stuck is None:
                yield start, end, word
                continue
            middle = stuck.start()
            yield start, middle, "".join(title_words(text[start:middle]))
            yield middle, end, "".join(title_words(text[middle:end]))

    def _name_at_start(self, words: Words) -> tuple[str | None, int]:
        """The name that some words begin with, and of how many of them; (None, 1) without one.

        The longest that is a name word by word; else the shortest that can be one and ends, or else
        begins, with a word of it.
        """
        if not any(word in self._by_word for word in words):
            return None, 1
        lengths = range(1, len(words) + 1)
        for length in reversed(lengths):
            name = self._first(words[:length], _same_words)
            if name is not None:
                return name, length
        for is_whole in (_ends_alike, _begins_alike):
            for length in lengths:
                name = self._first(words[:length], is_whole, _same_person)
                if name is not None:
                    return name, length
        return None, 1

    def _first(self, printed: Words, *conditions: Callable[[Words, Words], bool]) -> str | None:
        """The first name that shares a word with a print and fulfils the conditions with it."""
        for word in (*printed, "".join(printed)):
            for name in self._by_word.get(word, ()):
                if all(holds(_words(name), printed) for holds in conditions):
                    return name
        return None


def count_differences(printed: Iterable[str], known: Iterable[str]) -> int:
    """How many names are in one list alone; 0 where one of them is empty."""
    names, on_page = KnownNames(known), tuple(printed)
    if not names.names or not on_page:
        return 0
    matched = [names.match(name) for name in on_page]
    return matched.count(None) + len(set(names.names).difference(filter(None, matched)))


@lru_cache(maxsize=4096)
def _words(name: str) -> Words:
    """The words of a name without accents, marks and suffixes; "J.L." is two."""
    words = title_words(without_titles(name).replace(".", ". "))
    return tuple(word for word in words if word not in SUFFIXES)


def _same_words(name: Words, printed: Words) -> bool:
    return name == printed


def _ends_alike(name: Words, printed: Words) -> bool:
    return name[-1:] == printed[-1:]


def _begins_alike(name: Words, printed: Words) -> bool:
    return printed[0] in name


def _same_person(first: Words, second: Words) -> bool:
    """Whether two prints can be one person's name.

    Accents, hyphens, initials, middle names and order may differ, and one of two family names may
    stand alone: Teresa Quispe Mamani is Teresa Quispe.
    """
    if not first or not second:
        return False
    if "".join(first) == "".join(second) or sorted(first) == sorted(second):
        return True
    if len(first) < 2 or len(second) < 2:
        return False
    if first[-1] == second[-1] or _shares_family(first, second):
        return _agree(first[0], second[0])
    # Family name first on one side, as Chinese and Hungarian names are printed.
    if first[0] == second[-1] and _agree(first[1], second[0]):
        return True
    return second[0] == first[-1] and _agree(second[1], first[0])


def _shares_family(first: Words, second: Words) -> bool:
    if first[0] != second[0] or len(first[0]) < 2:
        return False
    families = {word for word in second[1:] if len(word) > 1}
    return not families.isdisjoint(first[1:])


def _agree(given: str, other: str) -> bool:
    """Whether two given names can be one: an initial, or the beginning of the longer."""
    return given.startswith(other) or other.startswith(given)
