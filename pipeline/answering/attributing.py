"""Whether the names and figures of a claim stand in the passage that it is said of, and if not, where they do.

A model that knows a claim already says it again under another passage, which then seems to hold it up. Words alone
decide, so that nobody is asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.answering.claiming import CLAIM_CHARS
from pipeline.answering.retrieving import Found

# A figure is one word, with its point and the commas between its thousands; so is a macro of TeX, with its backslash.
_WORD = re.compile(r"\\[A-Za-z]+|\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+\.\d+|\w+")
_SENTENCE_END = re.compile(r"[.!?:]\s+")
# Below it a figure such as 3 stands in some passage by chance.
_FEWEST_SIGNS = 4


@dataclass(frozen=True, slots=True)
class Source:
    """A passage that a claim may rest on, with what else is known to stand behind it."""

    passage: Found
    known: str = ""
    """Claims of tables on its paper, where it is front matter."""

    def words(self) -> frozenset[str]:
        """All that stands there, heading and the paper's id too."""
        return _words(f"{self.passage.arxiv_id} {self.passage.told()} {self.known}")


@dataclass(frozen=True, slots=True)
class Attributed:
    """claims: in order, each with the passage that it rests on. moved: number of a claim → id of the passage that was
    named for it, where it rests on another. loose: numbers of those whose names and figures stand in none."""

    claims: tuple[tuple[str, Found], ...]
    moved: Mapping[int, str]
    loose: tuple[int, ...]

    def trace(self) -> dict[str, Any]:
        moved = [{"claim": number, "named": passage_id} for number, passage_id in self.moved.items()]
        return {"moved": moved, "loose": list(self.loose)}


def attribute(
    claims: Iterable[tuple[str, Found]], question: str, sources: Sequence[Source], first: int = 1
) -> Attributed:
    """Each claim with its `home_of`; one that has none stays where it is. first: number of the first claim."""
    placed: list[tuple[str, Found]] = []
    moved, loose = {}, []
    for number, (text, named) in enumerate(claims, first):
        home = home_of(text, named, question, sources)
        if home is None:
            loose.append(number)
        elif home.passage_id != named.passage_id:
            moved[number] = named.passage_id
        placed.append((text, home or named))
    return Attributed(tuple(placed), moved, tuple(loose))


def home_of(claim: str, named: Found, question: str, sources: Sequence[Source]) -> Found | None:
    """The passage that a claim rests on: the one that was named for it, or, where that lacks its names and figures, the
    first of the sources that has them all. None where none has.

    What the question says counts as known everywhere. But where a short figure is lacking, and with it a name that the
    question has too, the one source that holds all of them is the claim's.
    sources: what was shown, the likeliest first.
    """
    every = particulars(claim)
    wanted, lacking = every - _words(question), every - Source(named).words()
    if _signs(wanted & lacking) >= _FEWEST_SIGNS:
        return next((source.passage for source in sources if wanted <= source.words()), None)
    if wanted & lacking and _signs(lacking) >= _FEWEST_SIGNS:
        homes = {source.passage.passage_id: source.passage for source in sources if every <= source.words()}
        return homes.popitem()[1] if len(homes) == 1 else named
    return named


def _signs(words: Iterable[str]) -> int:
    return sum(map(len, words))


def particulars(text: str) -> set[str]:
    """The names and figures of a text, in small letters: words with a digit, those with a capital that begin no
    sentence, and macros of TeX. The last word of a claim that reached its bound may be a part of one, and is none.

    Macros, since JSON has no escape \\d: a model that is held to JSON and copies \\delta as it stands writes \\beta.
    """
    whole = text if len(text) < CLAIM_CHARS else text.rpartition(" ")[0]
    sentences = map(_WORD.findall, _SENTENCE_END.split(whole))
    return {word.casefold() for sentence in sentences for word in _particular(sentence)}


def _particular(words: Sequence[str]) -> Iterable[str]:
    for place, word in enumerate(words):
        if word.startswith("\\") or any(map(str.isdigit, word)) or (place > 0 and word[0].isupper()):
            yield word


def _words(text: str) -> frozenset[str]:
    return frozenset(word.casefold() for word in _WORD.findall(text))
