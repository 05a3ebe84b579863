"""CSV files that users give: UTF-8, comma-separated, with column names in the first line."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import SettingError

# 1,000 answers of 2,000 words each are some 12 MB; a hundred rated tasks with the longest comments
# 4 MB.
MOST_BYTES = 20_000_000
SAVE_AS = "save it as CSV UTF-8, comma-separated"


@dataclass(frozen=True, slots=True)
class CsvRow:
    """A row of a file. number: of the line on which it begins, from 1. cells: column → cell as
    written, empty where the row is short; under '' all that stands beyond the last column with a
    name.
    """

    number: int
    cells: Mapping[str, str]


def read_content(file: Path, expected: str, most: int = MOST_BYTES) -> bytes:
    """The bytes of a file. expected: what the file should be, for messages. Raises SettingError for
    a file of more than `most` bytes, or one that cannot be read.
    """
    try:
        if file.stat().st_size > most:
            raise SettingError(f"{file} has over {most:,} bytes: give {expected}")
        return file.read_bytes()
    except OSError as error:
        raise SettingError(f"{file} cannot be read ({error.strerror}): give {expected}") from error


def parse_csv(content: bytes, needed: Sequence[str]) -> list[CsvRow]:
    """The rows that hold anything, in order. needed: columns that there must be, beside others and
    in any order.

    Raises SettingError with the line for what is not CSV in UTF-8, lacks a column or has one twice.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SettingError(f"line {line}: it is not UTF-8 ({error.reason}): {SAVE_AS}") from None
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows: list[CsvRow] = []
    line = 1
    try:
        columns = _check_columns(next(reader, []), needed)
        line = reader.line_num + 1
        for cells in reader:
            if any(cell.strip() for cell in cells):
                by_column = dict.fromkeys(columns, "") | dict(zip(columns, cells, strict=False))
                rows.append(CsvRow(line, by_column | {"": "".join(cells[len(columns) :])}))
            line = reader.line_num + 1
    except csv.Error as error:
        raise SettingError(
            f"line {line}: it is not CSV ({error}): put quotes around cells and double those within"
            f" them, or {SAVE_AS}"
        ) from None
    return rows


def _check_columns(header: Sequence[str], needed: Sequence[str]) -> list[str]:
    columns = [cell.strip() for cell in header]
    # Many spreadsheets write empty last columns; a text with commas and no quotes would end there.
    while columns and not columns[-1]:
        columns.pop()
    missing = [column for column in needed if column not in columns]
    if missing:
        raise SettingError(
            f"line 1: no column {', '.join(missing)} in {', '.join(columns)[:200]!r}: name the"
            f" columns there, and {SAVE_AS}"
        )
    twice = [column for column, count in Counter(columns).items() if count > 1 and column]
    if twice:
        raise SettingError(f"line 1: column {', '.join(twice)} is there twice: remove one of them")
    return columns
