"""A text with `[Reference i]` as pieces that a page can link.

Markdown of a model is text like any other here: it is shown as it was written, never rendered.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

# Four digits, ASCII: no task has 10,000 references, and int() refuses numbers of more than 4,300
# digits.
_CITATION = re.compile(r"(\[Reference [0-9]{1,4}\])")
_BLANK_LINE = re.compile(r"\n\s*\n")
# Control signs other than tab and line feed mean nothing on a page, and some stop a parser.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def make_environment(*folders: Path) -> Environment:
    """Templates of these folders, which escape every value and show its control signs."""
    return Environment(
        loader=FileSystemLoader(folders),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: printable(value) if type(value) is str else value,
        auto_reload=False,
    )


def policy_hash(text: str) -> str:
    """The hash of a style sheet or script within a page, as its policy has it after `sha256-`."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of text. number: of a cited reference. known: whether the task has that reference."""

    text: str
    number: int | None = None
    known: bool = False


def paragraphs(text: str, known: Collection[int]) -> list[list[Piece]]:
    """The paragraphs of a text, each as pieces; their texts joined give the paragraph back."""
    return [pieces(part, known) for part in parted(text)]


def parted(text: str) -> list[str]:
    """The paragraphs of a text, none of them empty."""
    parts = (part.strip() for part in _BLANK_LINE.split(printable(text)))
    return [part for part in parts if part]


def pieces(text: str, known: Collection[int]) -> list[Piece]:
    """A text as pieces; `known`: the numbers that the task's references have."""
    parts = []
    for place, part in enumerate(_CITATION.split(text)):
        if place % 2:  # citations and the texts around them alternate
            number = int(part.removeprefix("[Reference ").removesuffix("]"))
            parts.append(Piece(part, number, number in known))
        elif part:
            parts.append(Piece(part))
    return parts


def printable(text: str) -> str:
    """The text with control signs shown as U+FFFD and line ends as line feeds."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n").replace("\r", "\n"))
