"""README and the pages of docs/ as tests read them: chapters, fenced blocks, commands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
README = PROJECT / "README.md"
PAGES = (README, *sorted((PROJECT / "docs").glob("*.md")))


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a page that a reader is to type: where it stands, and what to type, without comment and prompt."""

    place: str
    text: str


def chapter(page: Path, heading: str) -> str:
    """What stands under a heading of the second level, up to the next one."""
    found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", page.read_text(), re.MULTILINE | re.DOTALL)
    if found is None:
        raise LookupError(f"{page.name} has no chapter {heading!r}")
    return found.group(1)


def fenced(text: str, place: str = "") -> Iterator[Line]:
    """What is to be typed in blocks that name no language: their lines, but those that a `$` tells to be answers."""
    for block in re.findall(r"^```\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        lines = block.splitlines()
        prompted = any(line.startswith("$ ") for line in lines)
        for line in lines:
            typed = re.sub(r"\s+# .*$|^#.*$", "", line.removeprefix("$ ")).strip()
            if typed and (line.startswith("$ ") or not prompted):
                yield Line(f"{place}: {line}", typed)


def inline(text: str, place: str = "") -> Iterator[Line]:
    """What stands between single backticks, outside of blocks."""
    outside = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    for span in re.findall(r"(?<!`)`([^`]+)`(?!`)", outside):
        typed = " ".join(span.split())
        yield Line(f"{place}: `{typed}`", typed)


def table_rows(text: str, heading: str) -> list[list[str]]:
    """The cells of the table whose head begins with a cell, row by row."""
    found = re.search(rf"^\| {re.escape(heading)} \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", text, re.MULTILINE)
    if found is None:
        raise LookupError(f"no table begins with {heading!r}")
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in found.group(1).splitlines()]
