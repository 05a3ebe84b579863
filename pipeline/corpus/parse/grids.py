"""A table's rows as Markdown, for every parser of pages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import takewhile, zip_longest
from typing import NamedTuple

from pipeline.corpus.parse.parsed_page import PageError
from pipeline.corpus.parse.policies import visible

# The longest head that spans columns in the 21 real papers has 53 characters; a page of broken
# markup must not be copied 200 times.
_LONGEST_HEAD = 200
_MOST_HEADS = 4
# What claims to span more, or to fill more with its spans, is broken input, not a table.
_WIDEST_SPAN, _MOST_CELLS = 200, 100_000
# Rows times columns of a table as it is written, where short rows get empty cells.
_LARGEST_GRID = 1_000_000

_TEX_COMMAND = re.compile(r"\\[A-Za-z]+")
_NUMBER = re.compile(r"(?=[^A-Za-z]*\d)[^A-Za-z]*[kKMBs]?")


class TableCell(NamedTuple):
    """A cell as the page has it. ruled: whether a line is above it."""

    text: str
    columns: int = 1
    rows: int = 1
    is_head: bool = False
    ruled: bool = False

    @property
    def is_number(self) -> bool:
        """Whether it is a number, formula or range: `3.14`, `12.3 %`, `7.5$\\pm$0.2`, `291k`."""
        return bool(_NUMBER.fullmatch(_TEX_COMMAND.sub("", self.text)))


Row = Sequence[TableCell]


def span(value: str | None) -> int:
    """The columns or rows of a `colspan` or `rowspan`, within bounds; 1 without one."""
    text = (value or "")[:4]
    return max(1, min(int(text), _WIDEST_SPAN)) if text.isdecimal() else 1


def markdown_grid(rows: Sequence[Row]) -> tuple[str, int]:
    """(the table as Markdown, how many visible characters of it are repeated heads).

    The first line is the head. A cell over several columns or rows is at its first; in a head of
    several rows a cell over several columns is over each of them, and the head becomes one line,
    column by column: EN-DE below BLEU is `BLEU EN-DE`. Rows and columns without any text are left
    out. Raises PageError for more than a million cells.
    """
    heads = head_rows(rows)
    table, repeated = _spread(rows, heads)
    return _markdown(table, heads), repeated


def head_rows(rows: Sequence[Row]) -> int:
    """How many rows at the top of a table are its head; 1 where nothing tells.

    Rows of head cells are, but for LaTeXML's wrong guesses: a row of numbers below a row whose
    cells span no columns is data. So are rows below a first row whose cells span columns, whatever
    LaTeXML called them: as many as the others of its cells span, or, where these are empty, all
    above the first line drawn across the table.
    """
    heads = max(_marked_heads(rows), _heads_by_rowspan(rows), _heads_by_line(rows))
    return heads if heads < len(rows) else 1


def _marked_heads(rows: Sequence[Row]) -> int:
    marked = sum(1 for _ in takewhile(_is_head, rows))
    for number in range(1, marked):
        if _is_of_numbers(rows[number]) and not _spans_columns(rows[number - 1]):
            return number
    return marked


def _heads_by_rowspan(rows: Sequence[Row]) -> int:
    heights = [cell.rows for cell in rows[0] if 1 < cell.rows <= _MOST_HEADS] if rows else []
    return min(heights) if heights and _spans_columns(rows[0]) else 1


def _heads_by_line(rows: Sequence[Row]) -> int:
    """For a first row such as `| | | Accuracy (4 columns) |` above a row that names columns."""
    if len(rows) < 2 or not _spans_columns(rows[0]) or _is_of_numbers(rows[1]):
        return 1
    beside = [cell for cell in rows[0] if cell.columns == 1]
    if not beside or any(cell.text or cell.rows > 1 for cell in beside):
        return 1
    ruled = [
        number
        for number in range(2, min(len(rows), _MOST_HEADS + 1))
        if all(cell.ruled for cell in rows[number])
    ]
    return ruled[0] if ruled else 2


def _is_head(row: Row) -> bool:
    """Whether a row holds nothing but head cells and empty ones."""
    return any(cell.is_head for cell in row) and all(cell.is_head or not cell.text for cell in row)


def _is_of_numbers(row: Row) -> bool:
    """Whether at least half of a row's cells with text are numbers."""
    texts = [cell for cell in row if cell.text]
    return bool(texts) and 2 * sum(cell.is_number for cell in texts) >= len(texts)


def _spans_columns(row: Row) -> bool:
    return any(cell.columns > 1 for cell in row)


def _spread(rows: Iterable[Row], heads: int) -> tuple[list[list[str]], int]:
    """Texts of the rows, empty where a cell spans; and the number of repeated characters."""
    rows_left: dict[int, int] = {}
    table: list[list[str]] = []
    size = repeated = 0
    for cells in rows:
        row: list[str] = []
        if size > _MOST_CELLS:
            rows_left, cells = {}, [TableCell(cell.text) for cell in cells]
        for cell in cells:
            if rows_left:
                _fill(row, rows_left)
            if cell.rows > 1:
                rows_left.update(
                    dict.fromkeys(range(len(row), len(row) + cell.columns), cell.rows - 1)
                )
            copy = cell.text if len(table) < heads > 1 and len(cell.text) <= _LONGEST_HEAD else ""
            row += [cell.text] + [copy] * (cell.columns - 1)
            if copy:
                repeated += visible(copy) * (cell.columns - 1)
        _fill(row, rows_left)
        size += len(row)
        table.append(row)
    return table, repeated


def _fill(row: list[str], rows_left: dict[int, int]) -> None:
    """Add empty texts where cells of earlier rows reach into this one."""
    while rows_left.get(len(row), 0) > 0:
        rows_left[len(row)] -= 1
        row.append("")


def _markdown(rows: Sequence[Sequence[str]], heads: int) -> str:
    if heads > 1:
        columns_of_head = zip_longest(*rows[:heads], fillvalue="")
        rows = [
            [" ".join(dict.fromkeys(filter(None, column))) for column in columns_of_head],
            *rows[heads:],
        ]
    filled = [
        [cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows if any(row)
    ]
    width = max(map(len, filled), default=0)
    if len(filled) * width > _LARGEST_GRID:
        raise PageError("table_too_large", f"a table of {len(filled):,} rows of {width:,} cells")
    padded = [row + [""] * (width - len(row)) for row in filled]
    columns = [place for place in range(width) if any(row[place] for row in padded)]
    lines = [f"| {' | '.join(row[place] for place in columns)} |" for row in padded]
    if lines:
        lines.insert(1, "|" + " --- |" * len(columns))
    return "\n".join(lines)
