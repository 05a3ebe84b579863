"""Texts on one line, without accents, with other words in some spans, or safe to print; digests;
counts with nouns; patterns of spaces.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata

SPACES = r"(?<!\s)\s++"
"""Pattern of a whole run of white space, for the beginning of a search: `\\s+` there is tried from
every space of a long run, in quadratic time.
"""
MAYBE_SPACES = rf"(?:{SPACES})?"
"""Pattern of a whole run of white space or none, for the beginning of a search."""

# Control characters but tab and line feed, and those that turn the direction of what follows them.
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

_LONGEST_SHOWN = 2_000
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")


def one_line(text: str) -> str:
    """The text without white space at its ends, and with one space for any within."""
    return " ".join(text.split())


def clip(text: str) -> str:
    """A title, name or reference as it is shown: no more of it than of the longest real ones."""
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def without_accents(text: str) -> str:
    """The text by NFKD, without combining marks: plain letters where they had accents."""
    if text.isascii():
        return text
    return _NOT_ASCII.sub(_unless_combining, unicodedata.normalize("NFKD", text))


def _unless_combining(sign: re.Match[str]) -> str:
    return "" if unicodedata.combining(sign[0]) else sign[0]


def text_digest(text: str) -> str:
    """SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def visible(text: str) -> str:
    """The text with a sign in place of every character that would steer a terminal."""
    return UNSAFE.sub("\ufffd", text)


def number_of(number: int, noun: str) -> str:
    """A count with its noun: `1 passage`, `1,200 passages`, `2 entries`."""
    if number != 1:
        noun = f"{noun[:-1]}ies" if noun.endswith("ry") else f"{noun}s"
    return f"{number:,} {noun}"


def without_lone_surrogates(text: str) -> str:
    """The text with U+FFFD for half of a surrogate pair, which an escape can give and no file can
    hold.
    """
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
