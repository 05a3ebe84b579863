"""Read the tables of a passage, in Markdown, as cells with the labels of their rows and columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# A cell that begins with a number: "12.5", "$\pm 3$", "~40 %".
NUMBER_CELL = re.compile(r"[\s$\\{}~≈<>+\-–−±(]*(?:\w+\{)?\d")
_HAS_LETTER = re.compile(r"[^\W\d_]")
# Bars within a cell are escaped.
_BAR = re.compile(r"(?<!\\)\|")


@dataclass(frozen=True, slots=True)
class TableCell:
    """A cell that holds a value. row: the labels of its row, joined; column: of its column."""

    row: str
    column: str
    value: str


@dataclass(frozen=True, slots=True)
class Table:
    """A table. caption: the lines before it, as far as another table; rows: without the header."""

    caption: list[str]
    header: list[str]
    rows: list[list[str]]

    def cells(self) -> Iterator[TableCell]:
        """The cells that hold a value, row by row."""
        above = ""
        width = _label_columns(self.rows)
        for columns, cells in _labelled_rows(self.header, self.rows):
            # An empty label stands for the one above it.
            above = cells[0] or above
            row = ", ".join(filter(None, [above, *cells[1:width]]))
            for column, value in zip(columns[width:], cells[width:], strict=False):
                if value:
                    yield TableCell(row, column, value)


def tables_in(text: str) -> Iterator[Table]:
    """The tables of a text that have a row below their header."""
    caption: list[str] = []
    lines: list[list[str]] = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            cells = [cell.strip() for cell in _BAR.split(line.strip())[1:-1]]
            if not all(set(cell) <= set("-: ") for cell in cells):
                lines.append(cells)
            continue
        if len(lines) > 1:
            yield Table(caption, lines[0], lines[1:])
        if lines:
            caption, lines = [], []
        caption.append(line)


def _label_columns(rows: Sequence[Sequence[str]]) -> int:
    """How many of the first columns label the rows: those of words that follow the first, if its
    labels are not one for each row ("FinTabNet" for a row of OTSL and one of HTML).
    """
    labels = [row[0] for row in rows]
    width = 1
    if len(set(filter(None, labels))) < len(labels):
        shortest = min(map(len, rows))
        while width < shortest and _holds_words_alone([row[width] for row in rows]):
            width += 1
        # A table without numbers has its values in words.
        if width == shortest:
            return 1
    return width


def _holds_words_alone(cells: Sequence[str]) -> bool:
    return any(map(_HAS_LETTER.search, cells)) and not any(map(NUMBER_CELL.match, cells))


def _labelled_rows(
    header: Sequence[str], rows: Sequence[Sequence[str]]
) -> Iterator[tuple[Sequence[str], Sequence[str]]]:
    """The labels of the columns, and the cells, of each row.

    A header whose labels span columns has a second row of labels below it, which may be repeated
    further down.
    """
    columns = header
    second: Sequence[str] = ()
    if "" in header[1:] and rows and not any(map(NUMBER_CELL.match, rows[0][1:])):
        second = rows[0][1:]
        columns = _joined_labels(header, rows[0])
    for cells in rows:
        if cells[1:] != second:
            yield columns, cells


def _joined_labels(header: Sequence[str], second: Sequence[str]) -> list[str]:
    """Labels of both rows of a header; an empty one of the first continues the one before it."""
    columns, spanning = [], ""
    for first, below in zip(header, second, strict=False):
        spanning = first or spanning
        columns.append(f"{spanning} {below}".strip())
    return columns
