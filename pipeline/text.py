"""Text on one line."""

from __future__ import annotations


def one_line(text: str) -> str:
    """The text without white space at its ends, and with one space for any within."""
    return " ".join(text.split())
