"""Names of authors out of arXiv's author lines, as authors typed them."""

from __future__ import annotations

import re
import unicodedata

_ACCENTS = {
    "'": "\u0301", "`": "\u0300", "^": "\u0302", '"': "\u0308", "~": "\u0303", "=": "\u0304", ".": "\u0307",
    "u": "\u0306", "v": "\u030c", "H": "\u030b", "c": "\u0327", "k": "\u0328", "r": "\u030a", "d": "\u0323",
}  # fmt: skip
_LETTERS = {
    "o": "ø", "O": "Ø", "l": "ł", "L": "Ł", "ss": "ß", "ae": "æ", "AE": "Æ", "oe": "œ", "OE": "Œ", "aa": "å",
    "AA": "Å", "i": "i", "j": "j",
}  # fmt: skip
# An accent that is a letter needs a brace or a blank after it; else it is the beginning of a longer command.
_ACCENTED = re.compile(r"""\\(?:(['`^"~=.])\s*|([uvHckrd])(?:\s+|(?=\{)))(?:\{\s*\\?([A-Za-z])\s*\}|\\?([A-Za-z]))""")
_LETTER = re.compile(r"\\(ss|ae|AE|oe|OE|aa|AA|[oOlLij])(?![A-Za-z])\s?")
# Set off by a comma, they belong to the name before: "John Smith, Jr., B. Two" are two authors.
_SUFFIX = re.compile(r",\s*(?=(?:[JS]r\.?|I{2,3}|IV)\s*(?:[,;]|and\b|$))")
_REST = re.compile(r"et\.? al\.?|others", re.IGNORECASE)


def split_authors(text: str) -> tuple[str, ...]:
    """Names from arXiv's author line: `A. One, B.C. Two (Lab, City) and C. Three` has three.

    Accents in TeX become letters, and initials stand apart, as in names that arXiv itself has taken apart.
    """
    bare = re.sub(r"\([^()]*\)", " ", re.sub(r"\([^()]*\)", " ", " ".join(plain_letters(text).split())))
    names = re.split(r",\s*(?:and\s+)?|;\s*|\s+and\s+", _SUFFIX.sub(" ", bare))
    parts = (re.sub(r"\.(?=[^\s.,])", ". ", part.strip()) for part in names)
    return tuple(" ".join(part.split()) for part in parts if part and not _REST.fullmatch(part))


def plain_letters(text: str) -> str:
    r"""The text with accents in TeX as letters: `Bal\'azs`, `{\O}bro` and `\v{S}r\'amek`; braces go."""
    if "\\" not in text:
        return text
    return _LETTER.sub(lambda found: _LETTERS[found[1]], _ACCENTED.sub(_accented, text)).translate(
        {123: None, 125: None}
    )


def _accented(found: re.Match[str]) -> str:
    letter = found[3] or found[4]
    return unicodedata.normalize("NFC", letter + _ACCENTS[found[1] or found[2]])
