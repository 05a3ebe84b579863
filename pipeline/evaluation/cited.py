"""A text with `[Reference i]` as pieces that a page can link.

Markdown of a model is text like any other here: it is shown as it was written, never rendered.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

# Four digits, ASCII: no task has 10,000 references, and int() refuses numbers of more than 4,300 digits.
_GROUP = re.compile(
    r"\[\s*References?\s+[0-9]{1,4}(?:\s*(?:,|;|and)\s*(?:Reference\s+)?[0-9]{1,4})*\s*\]", re.IGNORECASE
)
_NUMBER = re.compile(r"[0-9]+")
_BLANK_LINE = re.compile(r"\n\s*\n")
# Control signs other than tab and line feed mean nothing on a page, and some stop a parser.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of text; `number` is set where it names a reference, `known` says whether the task has that one."""

    text: str
    number: int | None = None
    known: bool = False


def paragraphs(text: str, known: Collection[int]) -> list[list[Piece]]:
    """The paragraphs of a text, each as pieces; their texts joined give the paragraph back."""
    return [pieces(part, known) for part in parted(text)]


def parted(text: str) -> list[str]:
    """The paragraphs of a text, none of them empty."""
    return [part for each in _BLANK_LINE.split(printable(text)) if (part := each.strip())]


def pieces(text: str, known: Collection[int]) -> list[Piece]:
    """A text as pieces; `known`: the numbers that the task's references have."""
    return list(_pieces(text, known))


def printable(text: str) -> str:
    """The text with control signs shown as U+FFFD and line ends as line feeds."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n").replace("\r", "\n"))


def _pieces(text: str, known: Collection[int]) -> Iterator[Piece]:
    end = 0
    for group in _GROUP.finditer(text):
        if group.start() > end:
            yield Piece(text[end : group.start()])
        yield from _group(group.group(), known)
        end = group.end()
    if end < len(text):
        yield Piece(text[end:])


def _group(text: str, known: Collection[int]) -> Iterator[Piece]:
    """`[Reference 3]` as one piece; of `[Reference 3, 4]` each number as its own, the rest between them."""
    numbers = list(_NUMBER.finditer(text))
    if len(numbers) == 1:
        yield _reference(text, numbers[0].group(), known)
        return
    end = 0
    for number in numbers:
        yield Piece(text[end : number.start()])
        yield _reference(number.group(), number.group(), known)
        end = number.end()
    yield Piece(text[end:])


def _reference(text: str, number: str, known: Collection[int]) -> Piece:
    return Piece(text, int(number), int(number) in known)
