"""A table of a report, once for HTML, Markdown and JSON, so that the three cannot tell different numbers.

Only the form is here; `comparison` and its neighbours say which numbers stand in which table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isclose
from typing import Any, Literal

from pipeline.evaluation.cited import printable
from pipeline.report.filters import count, fixed, percent

Form = Literal["text", "count", "percent", "one", "two", "three"]
_DIGITS = {"one": 1, "two": 2, "three": 3}
NOTHING = "–"
"""What stands for a number that there is not."""


@dataclass(frozen=True, slots=True)
class Value:
    """One cell: a number or text, None for what there is not; `low` and `high` are the ends of its interval.

    form: how it is told; percent: of a share, 0 to 1. tag: a word set beside it. page: a file of the report's folder
    that it leads to. arxiv_id: a paper that it leads to.
    """

    value: float | int | str | None
    form: Form = "text"
    low: float | None = None
    high: float | None = None
    tag: str = ""
    page: str = ""
    arxiv_id: str | None = None

    @property
    def numeric(self) -> bool:
        return self.form != "text"

    @property
    def interval(self) -> str:
        """The interval as text, `24.1 to 26.5`; empty where there is none, or it has no width: all tasks have one
        value then, and drawing them again says nothing."""
        if self.low is None or self.high is None or isclose(self.low, self.high, abs_tol=1e-9):
            return ""
        low, high = _told(self.low, self.form), _told(self.high, self.form)
        return f"{low.removesuffix(' %')} to {high}" if self.form == "percent" else f"{low} to {high}"

    @property
    def shown(self) -> str:
        """The value as text, without its interval."""
        return NOTHING if self.value is None or self.value == "" else _told(self.value, self.form)

    def plain(self) -> str:
        """The value with interval and tag, as text."""
        interval = f" ({self.interval})" if self.interval else ""
        return f"{self.shown}{interval}{f' [{self.tag}]' if self.tag else ''}"

    def as_json(self) -> Any:
        """The value itself, or an object where more belongs to it; text without control signs."""
        value = printable(self.value) if isinstance(self.value, str) else self.value
        more: dict[str, Any] = {} if self.low is None or self.high is None else {"low": self.low, "high": self.high}
        more |= {name: text for name, text in (("tag", self.tag), ("page", self.page)) if text}
        return {"value": value, **more} if more else value


def _told(value: float | int | str, form: Form) -> str:
    if isinstance(value, str):
        return value
    if form == "percent":
        return percent(value)
    return fixed(value, _DIGITS[form]) if form in _DIGITS else count(int(value)) if form == "count" else str(value)


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows under a heading of their own, or none. `about` says what they rest on: model, judge, data."""

    rows: Sequence[Sequence[Value]]
    title: str = ""
    about: str = ""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table. `head`: names of the columns, each row as long; `strong`: names in the first column that stand out."""

    key: str
    title: str
    head: Sequence[str]
    groups: Sequence[Rows]
    about: str = ""
    notes: Sequence[str] = ()
    strong: Sequence[str] = ()
    stacked: bool = False
    """Whether a narrow screen shows a row as a block, not a table that scrolls sideways."""

    def __post_init__(self) -> None:
        for row in self.rows():
            if len(row) != len(self.head):
                raise ValueError(f"table {self.key}: {len(row)} cells under {len(self.head)} columns")

    def rows(self) -> list[Sequence[Value]]:
        """All rows, group after group."""
        return [row for group in self.groups for row in group.rows]

    def numeric(self, column: int) -> bool:
        """Whether a column holds numbers, which stand at its right edge."""
        return any(row[column].numeric for row in self.rows())

    def as_json(self) -> dict[str, Any]:
        """Title, notes, and rows as objects by the columns' names, with the group that each belongs to."""
        rows = [
            ({"group": group.title} if group.title else {}) | _row_json(self.head, row)
            for group in self.groups
            for row in group.rows
        ]
        told = {"title": self.title, "about": self.about, "notes": list(self.notes)}
        groups = [{"title": group.title, "about": group.about} for group in self.groups if group.title or group.about]
        return told | ({"groups": groups} if groups else {}) | {"rows": rows}


def _row_json(head: Sequence[str], row: Sequence[Value]) -> dict[str, Any]:
    return {name: cell.as_json() for name, cell in zip(head, row, strict=True)}


@dataclass(frozen=True, slots=True)
class Section:
    """A heading of a report with its tables and the figures between them, in order, and sentences before them."""

    key: str
    title: str
    paragraphs: Sequence[str] = ()
    parts: Sequence[Any] = field(default_factory=tuple)
    """Of `Grid` and of the figures of `figures`."""

    def grids(self) -> list[Grid]:
        return [part for part in self.parts if isinstance(part, Grid)]
