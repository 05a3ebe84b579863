"""Tables of a report as data, rendered from one definition as HTML and JSON.

A grid has a title, columns, rows and notes. A row holds plain values, or cells with a form of their
own, an interval, a tag or a link.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isclose
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pipeline.evaluation.prose import printable
from pipeline.report.formatting import MISSING, count, fixed, percent

if TYPE_CHECKING:
    from pipeline.evaluation.statistics import Estimate

Form = Literal["text", "count", "percent", "one", "two", "three"]
"""How a value is written: as text, a whole number, a share in percent, or a number with 1 to 3
decimals.
"""

Item = TypeVar("Item")
# A month of the whole dump has 10,000 papers and more left out: a page of 1,000 rows is 0.5 MB and
# still scrolls.
_MOST_ROWS = 1_000

_DIGITS = {"one": 1, "two": 2, "three": 3}


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: a number or text, None where there is none.

    low, high: the ends of its interval. tag: a word beside it. page: a file of the report that it
    links to. arxiv_id: a paper that it links to. best: whether it is the best of its column in its
    group. marks: words of the text that are marked.
    """

    value: float | int | str | None
    form: Form = "text"
    low: float | None = None
    high: float | None = None
    tag: str = ""
    page: str = ""
    arxiv_id: str | None = None
    best: bool = False
    marks: tuple[str, ...] = ()

    @property
    def numeric(self) -> bool:
        return self.form != "text"

    @property
    def interval(self) -> str:
        """The interval as text, `24.1 to 26.5`; empty where there is none or all tasks have one
        value.
        """
        if self.low is None or self.high is None or isclose(self.low, self.high, abs_tol=1e-9):
            return ""
        low, high = _format(self.low, self.form), _format(self.high, self.form)
        if self.form == "percent":
            low = low.removesuffix(" %")
        return f"{low} to {high}"

    @property
    def text(self) -> str:
        """The value as text, without its interval."""
        return MISSING if self.value is None else _format(self.value, self.form)

    def plain(self) -> str:
        """The value with interval and tag, as text."""
        interval = f" ({self.interval})" if self.interval else ""
        tag = f" [{self.tag}]" if self.tag else ""
        return f"{self.text}{interval}{tag}"

    def as_json(self) -> Any:
        """The value, or an object where it has an interval, a tag or a page; text without control
        characters.
        """
        value = printable(self.value) if isinstance(self.value, str) else self.value
        more: dict[str, Any] = {}
        if self.low is not None and self.high is not None:
            more |= {"low": self.low, "high": self.high}
        if self.tag:
            more["tag"] = self.tag
        if self.page:
            more["page"] = self.page
        return {"value": value, **more} if more else value


def mean_cell(mean: Estimate | None, form: Form, scale: float = 1) -> Cell:
    """A mean or difference with its interval as a cell; empty for None. scale: what all three
    numbers are multiplied by.
    """
    if mean is None or mean.value is None:
        return Cell(None, form)
    if mean.low is None or mean.high is None:
        return Cell(scale * mean.value, form)
    return Cell(scale * mean.value, form, scale * mean.low, scale * mean.high)


def percent_cell(value: float | None) -> Cell:
    """A share, 0 to 1, in percent."""
    return Cell(value, "percent")


def _form(value: float | int | str | None) -> Form:
    if isinstance(value, float):
        return "two"
    return "count" if isinstance(value, int) else "text"


def _format(value: float | int | str, form: Form) -> str:
    if isinstance(value, str):
        return value
    if form == "percent":
        return percent(value)
    if form == "count":
        return count(int(value))
    return fixed(value, _DIGITS[form]) if form in _DIGITS else str(value)


GridRow = Sequence[Any]
"""Cells, or plain values: texts, whole numbers, floats (shown with two decimals), and None."""


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Rows under a heading of their own. about: their basis, such as model, judge and data."""

    rows: Sequence[Any]
    title: str = ""
    about: str = ""


@dataclass(slots=True)
class Grid:
    """A table.

    groups: those without rows are left out. totals: first cells of rows that are emphasised.
    stacked: a narrow screen shows each row as a block. sortable: readers can sort it by any column.
    folded: the title of an element, closed at first, that holds the table; '' for none.
    definitions: what its measures mean.
    """

    key: str
    title: str
    columns: Sequence[str]
    rows: Sequence[GridRow] = ()
    groups: Sequence[RowGroup] = ()
    about: str = ""
    notes: Sequence[str] = ()
    totals: Sequence[str] = ()
    stacked: bool = False
    sortable: bool = False
    folded: str = ""
    definitions: Sequence[str] = ()
    kind: Literal["grid"] = "grid"

    def __post_init__(self) -> None:
        groups = [group for group in self.groups if group.rows] or [RowGroup(self.rows)]
        self.groups = [replace(group, rows=[*map(self._cells, group.rows)]) for group in groups]
        self.rows = [row for group in self.groups for row in group.rows]

    def _cells(self, row: GridRow) -> list[Cell]:
        if len(row) != len(self.columns):
            raise ValueError(
                f"table {self.key}: {len(row)} cells under {len(self.columns)} columns"
            )
        return [value if isinstance(value, Cell) else Cell(value, _form(value)) for value in row]

    def numeric(self, column: int) -> bool:
        """Whether a column holds numbers, which are aligned to the right."""
        return any(row[column].numeric for row in self.rows)

    def as_json(self) -> dict[str, Any]:
        """Title, notes, and rows as objects by column name, with the group that each belongs to."""
        rows: list[dict[str, Any]] = []
        for group in self.groups:
            of_group = {"group": group.title} if group.title else {}
            for row in group.rows:
                cells = {name: cell.as_json() for name, cell in zip(self.columns, row, strict=True)}
                rows.append(of_group | cells)
        groups = [
            {"title": group.title, "about": group.about}
            for group in self.groups
            if group.title or group.about
        ]
        document: dict[str, Any] = {
            "title": self.title,
            "about": self.about,
            "notes": list(self.notes),
        }
        if groups:
            document["groups"] = groups
        document["rows"] = rows
        return document


def first_rows(items: Sequence[Item], others: str) -> tuple[Sequence[Item], list[str]]:
    """As many items as a page lists, and a note on where the others are, if there are any."""
    left = len(items) - _MOST_ROWS
    return items[:_MOST_ROWS], [f"The other {count(left)} are in {others}."] if left > 0 else []


def with_values(*grids: Grid) -> list[Grid]:
    """The grids that have a value beside the names of rows."""
    return [
        grid
        for grid in grids
        if any(cell.value is not None for row in grid.rows for cell in row[1:])
    ]


@dataclass(frozen=True, slots=True)
class PageSection:
    """A heading of a report with its paragraphs and links, then grids and figures in order.

    links: (text, file and place).
    """

    key: str
    title: str
    paragraphs: Sequence[str] = ()
    parts: Sequence[Any] = ()
    links: Sequence[tuple[str, str]] = ()

    @property
    def definitions(self) -> list[str]:
        """What its measures mean, shown in an element that is closed at first."""
        return [*dict.fromkeys(text for grid in self.grids for text in grid.definitions)]

    @property
    def grids(self) -> list[Grid]:
        return [part for part in self.parts if isinstance(part, Grid)]


def present(*sections: PageSection | None) -> list[PageSection]:
    """The sections that there are."""
    return [section for section in sections if section is not None]
