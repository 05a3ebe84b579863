"""The text of a passage as models and readers see it. Not here: which text becomes which passage."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

_MARKER = re.compile(r"\s?\[@[^\[\]]+\]")
_WORD = re.compile(r"\S*\w\S*")


def embedded_text(title: str, section_path: Sequence[str], text: str) -> str:
    """The text that is embedded for a passage: title, section path, and the passage without citation markers.

    WikiChat's form, `Title: {title > sections}. {content}` (its preprocessing/README), under one heading line.
    """
    return f"{' > '.join([title, *section_path])}\n{without_markers(text)}"


def without_markers(text: str) -> str:
    """The text without its citation markers `[@key]` and `[@key; @key]`."""
    return _MARKER.sub("", text)


def text_digest(text: str) -> str:
    """SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def count_words(text: str) -> int:
    """Words between white space; citation markers and lone signs, such as the bars of a table, are not counted."""
    return len(_WORD.findall(without_markers(text)))
