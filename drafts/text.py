"""Plain text: white space, counts with nouns, and citations as Pandoc writes them."""

from __future__ import annotations

import re
from collections.abc import Iterable

SPACES = r"(?<!\s)\s++"
"""Pattern of a whole run of white space, for the beginning of a search: `\\s+` there is tried from
every space of a long run, in quadratic time.
"""
CITATION_MARKER = re.compile(r"\[@[^\[\]]+\]")
"""A citation, `[@key1; @key2]`."""


def one_line(text: str) -> str:
    """The text without white space at its ends, and with one space for any within."""
    return " ".join(text.split())


def number_of(number: int, noun: str) -> str:
    """A count with its noun: `1 citation`, `1,200 citations`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def citation_marker(keys: Iterable[str]) -> str:
    """The marker `[@key1; @key2]` of a citation."""
    return f"[{'; '.join(f'@{key}' for key in keys)}]"


def cited_keys(text: str) -> tuple[str, ...]:
    """The keys in a text's citation markers, each once, in order of first citation."""
    groups = CITATION_MARKER.findall(text)
    keys = (key.strip(" @") for group in groups for key in group[1:-1].split(";"))
    return tuple(dict.fromkeys(keys))
