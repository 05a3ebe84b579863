"""Author lines of arXiv's records, typed by authors with TeX's accents, as lists of names."""

from __future__ import annotations

import re
import unicodedata

from pipeline.text import SPACES, one_line

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
_BRACKETED = re.compile(r"\([^()]*\)")
# Set off by a comma, they belong to the name before: "John Smith, Jr., B. Two" are two authors.
_SUFFIX_AFTER_COMMA = re.compile(r",\s*(?=(?:[JS]r\.?|I{2,3}|IV)\s*(?:[,;]|and\b|$))")
_BETWEEN_NAMES = re.compile(rf",\s*(?:and\s+)?|;\s*|{SPACES}and\s+")
_STUCK_INITIAL = re.compile(r"\.(?=[^\s.,])")
_REST = re.compile(r"et\.? al\.?|others", re.IGNORECASE)


def split_author_line(text: str) -> tuple[str, ...]:
    """Names from arXiv's author line: `A. One, B.C. Two (Lab, City) and C. Three` has three.

    Accents in TeX become letters, and initials are separated, as in names that arXiv itself splits.
    """
    line = one_line(plain_letters(text))
    for _ in range(2):  # brackets within brackets
        line = _BRACKETED.sub(" ", line)
    names = []
    for part in _BETWEEN_NAMES.split(_SUFFIX_AFTER_COMMA.sub(" ", line)):
        name = _STUCK_INITIAL.sub(". ", part.strip())
        if name and not _REST.fullmatch(name):
            names.append(one_line(name))
    return tuple(names)


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
