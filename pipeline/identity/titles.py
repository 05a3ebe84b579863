"""Decode the TeX of titles; fold titles and names so that two prints are equal; keys to look
titles up.

Keys are 64-bit numbers that every process and every run gives alike. Two works may share one: a key
finds candidates, never the answer.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import combinations

import numpy as np

from pipeline.text import one_line, without_accents

# A title is looked for by its four longest words less one, so one that is misspelt leaves a key of
# the other three.
LONGEST_WORDS = 4
# Where a title is not marked within its item, it is looked for by four words in a row, its longest
# among them. Shorter titles are not: "Deep learning" is in many items that cite another
# work.
WINDOW = 4

_ACCENT = re.compile(r"\\[`'^\"~=.uvHckrdb](?:\{\\?([A-Za-z])\}|(?<=[`'^\"~=.])\\?([A-Za-z]))")
_LETTER = re.compile(r"\\(o|O|l|L|ss|ae|AE|oe|OE|aa|AA|i|j)(?![A-Za-z])")
# NFKD leaves them whole.
_UNSPLIT = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "æ": "ae", "œ": "oe", "ı": "i"})
_FORMAT = re.compile(
    r"\\(?:emph|text\w*|math(?:rm|cal|bf|bb|it|sf|tt|frak)|mbox|rm|it|bf|em|sc|tt|sf)\b"
)
_BRACES = str.maketrans("", "", "{}$")
_ACCENTS = {
    "'": "\u0301",
    "`": "\u0300",
    "^": "\u0302",
    '"': "\u0308",
    "~": "\u0303",
    "=": "\u0304",
    ".": "\u0307",
    "u": "\u0306",
    "v": "\u030c",
    "H": "\u030b",
    "c": "\u0327",
    "k": "\u0328",
    "r": "\u030a",
    "d": "\u0323",
}
_LETTERS = {
    "o": "ø",
    "O": "Ø",
    "l": "ł",
    "L": "Ł",
    "ss": "ß",
    "ae": "æ",
    "AE": "Æ",
    "oe": "œ",
    "OE": "Œ",
    "aa": "å",
    "AA": "Å",
    "i": "i",
    "j": "j",
}
# An accent that is a letter needs a brace or a blank after it; else it is the beginning of a longer
# command.
_ACCENTED = re.compile(
    r"""\\(?:(['`^"~=.])\s*|([uvHckrd])(?:\s+|(?=\{)))(?:\{\s*\\?([A-Za-z])\s*\}|\\?([A-Za-z]))"""
)
_TEX_LETTER = re.compile(r"\\(ss|ae|AE|oe|OE|aa|AA|[oOlLij])(?![A-Za-z])\s?")
_WITHOUT_BRACES = str.maketrans("", "", "{}")
_FORMULA = re.compile(r"(?<!\\)(\$(?:[^$\\]|\\.)+\$)")
_FONT = re.compile(r"\\(?:emph|text[a-z]+|mbox|underline|em|it|bf|sc|tt|rm|sf|sl)(?![A-Za-z])\s*")
_ESCAPED = re.compile(r"\\([%&#_$])")
_PRINTED = {"~": " ", "---": "—", "--": "–", "``": "“", "''": "”"}
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
        text = _LETTER.sub(r"\1", _ACCENT.sub(lambda match: match[1] or match[2], text))
        text = _FORMAT.sub(" ", text)
    plain = text.translate(_BRACES)
    if plain.isascii():
        return plain.lower()
    return without_accents(plain).casefold().translate(_UNSPLIT)


def plain_letters(text: str) -> str:
    r"""The text without braces and with TeX's accents as letters: `Bal\'azs`, `\v{S}r\'amek`."""
    if "\\" not in text:
        return text

    def accented(match: re.Match[str]) -> str:
        letter = match[3] or match[4]
        return unicodedata.normalize("NFC", letter + _ACCENTS[match[1] or match[2]])

    text = _ACCENTED.sub(accented, text)
    text = _TEX_LETTER.sub(lambda match: _LETTERS[match[1]], text)
    return text.translate(_WITHOUT_BRACES)


def decode_tex(text: str) -> str:
    """A title or abstract of arXiv as plain text: accents, fonts, signs and quotation marks of TeX
    decoded, formulas as they are.
    """
    pieces = _FORMULA.split(text)
    pieces[::2] = map(_decode_words, pieces[::2])
    return one_line("".join(pieces))


def _decode_words(text: str) -> str:
    text = _ESCAPED.sub(r"\1", plain_letters(_FONT.sub("", text))).translate(_WITHOUT_BRACES)
    for written, printed in _PRINTED.items():
        text = text.replace(written, printed)
    return text


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
