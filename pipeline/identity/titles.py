"""Decode the TeX of titles; fold titles and names so that two prints are equal; keys to look
titles up.

Keys are 64-bit numbers that every process and every run gives alike. Two works may share one: a key
finds candidates, never the answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from hashlib import blake2b
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from pipeline.text import one_line, without_accents

if TYPE_CHECKING:
    from pylatexenc.latex2text import LatexNodes2Text

# A title is looked for by its four longest words less one, so one that is misspelt leaves a key of
# the other three.
LONGEST_WORDS = 4
# Where a title is not marked within its item, it is looked for by four words in a row, its longest
# among them. Shorter titles are not: "Deep learning" is in many items that cite another
# work.
WINDOW = 4

# Signs of accents, and the backslash of letters that are commands.
_ACCENT = re.compile(
    r"\\(?:[`'^\"~=.]|[uvHckrdb](?=\{)|(?=(?:ss|ae|AE|oe|OE|aa|AA|[oOlLij])(?![A-Za-z])))"
)
# NFKD leaves them whole.
_UNSPLIT = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "æ": "ae", "œ": "oe", "ı": "i"})
_FORMAT = re.compile(
    r"\\(?:emph|text\w*|math(?:rm|cal|bf|bb|it|sf|tt|frak)|mbox|rm|it|bf|em|sc|tt|sf)\b"
)
_BRACES = str.maketrans("", "", "{}$")
_TEX = re.compile(r"[\\{}~]|--|``|''")
# In TeX a comment, and the edge of a column.
_PLAIN_SIGN = re.compile(r"(?<!\\)[%&]")
_WORD = re.compile(r"[^\W_]+")

_MASK = (1 << 64) - 1
# Odd, so that multiplying loses no bit; other ones for each kind of key.
_OF_TITLE = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)
_OF_WINDOW = np.array(
    [0xD6E8FEB86659FD93, 0xA0761D6478BD642F, 0xE7037ED1A0B428DB, 0x8EBC6AF09C88C6E3],
    dtype=np.uint64,
)


def fold(text: str) -> str:
    """The text in lower case, without accents and TeX marks."""
    if "\\" in text:
        text = _FORMAT.sub(" ", _ACCENT.sub("", text))
    plain = text.translate(_BRACES)
    if plain.isascii():
        return plain.lower()
    return without_accents(plain).casefold().translate(_UNSPLIT)


def decode_tex(text: str) -> str:
    """A title, abstract or list of authors of arXiv as plain text: accents, fonts, signs and
    quotation marks of TeX decoded, formulas as they are.
    """
    if not _TEX.search(text):
        return one_line(text)
    try:
        return one_line(_converter().latex_to_text(_PLAIN_SIGN.sub(r"\\\g<0>", text)))
    except RecursionError:  # a hundred braces within each other
        return one_line(text)


@cache
def _converter() -> LatexNodes2Text:
    from pylatexenc.latex2text import LatexNodes2Text

    return LatexNodes2Text(math_mode="verbatim")


def words_of(folded: str) -> list[str]:
    """The words of a folded text, in order."""
    return _WORD.findall(folded)


def title_words(text: str) -> list[str]:
    """The words of a title in lower case, without accents, TeX marks and punctuation."""
    return _WORD.findall(fold(text))


@lru_cache(maxsize=1 << 17)
def _word_key(word: str) -> int:
    return int.from_bytes(blake2b(word.encode(), digest_size=8).digest(), "little")


def doi_key(doi: str) -> int:
    """The key of a DOI in lower case."""
    return int.from_bytes(blake2b(b"doi:" + doi.encode(), digest_size=8).digest(), "little")


def title_keys(words: Iterable[str]) -> list[int]:
    """The keys of a title: one per choice of its longest words but one; none for one word."""
    longest = sorted(sorted(set(words), key=lambda word: (-len(word), word))[:LONGEST_WORDS])
    if len(longest) < 2:
        return []
    hashes = [_word_key(word) for word in longest]
    subsets = combinations(hashes, max(2, len(hashes) - 1))
    return [
        sum(key * factor for key, factor in zip(subset, _OF_TITLE, strict=False)) & _MASK
        for subset in subsets
    ]


def window_keys(words: Sequence[str]) -> np.ndarray:
    """The keys of all windows of a text's words, in order (uint64)."""
    if len(words) < WINDOW:
        return np.empty(0, dtype=np.uint64)
    hashes = np.fromiter(map(_word_key, words), dtype=np.uint64, count=len(words))
    windows = np.lib.stride_tricks.sliding_window_view(hashes, WINDOW)
    return np.asarray((windows * _OF_WINDOW).sum(axis=1, dtype=np.uint64))


def window_key(words: Sequence[str]) -> int | None:
    """The key of the window that finds a title in running text; None for too few words."""
    if len(words) < WINDOW:
        return None
    longest = max(range(len(words)), key=lambda place: (len(words[place]), -place))
    start = min(max(longest - 1, 0), len(words) - WINDOW)
    hashes = map(_word_key, words[start : start + WINDOW])
    return sum(key * int(factor) for key, factor in zip(hashes, _OF_WINDOW, strict=True)) & _MASK
