"""CSV files that people send back, read as their spreadsheet programs saved them: signs, delimiter, records, columns.

UTF-8 with or without a mark, Excel's UTF-16, its first line `sep=;`, commas, semicolons or tabs, columns in any order.
What differs from sheet to sheet comes as arguments.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from pipeline.errors import SettingError

# 1,000 answers of 2,000 words each are some 12 MB; a hundred rated tasks with the longest comments 4 MB.
MOST_BYTES = 20_000_000
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
# Excel's own first line, which says what is between cells.
_STATED_DELIMITER = re.compile(r"sep=([,;\t])\r?\n")


@dataclass(frozen=True, slots=True)
class Record:
    """A record of a file. line: on which it begins, from 1, for messages; cells as they are there."""

    line: int
    cells: Sequence[str]

    def by_column(self, header: Sequence[str]) -> dict[str, str]:
        """Cells by the names of `header`; an empty one where the record is short, and under no name all that is
        in no named column."""
        pairs = list(zip_longest(header, self.cells, fillvalue=""))
        return dict(pairs) | {"": "".join(cell for name, cell in pairs if not name)}


def read_content(file: Path, wanted: str) -> bytes:
    """The bytes of a file. wanted: what it should be, for messages. Raises SettingError for one that is too large to
    be that, or cannot be read."""
    try:
        if file.stat().st_size > MOST_BYTES:
            raise SettingError(f"{file} has over {MOST_BYTES:,} bytes: give {wanted}")
        return file.read_bytes()
    except OSError as error:
        raise SettingError(f"{file} cannot be read ({error.strerror}): give {wanted}") from error


def decoded(name: object, content: bytes) -> str:
    """The text of a file without its mark. name: of the file, for messages. Raises SettingError where it is none."""
    try:
        return content.decode("utf-16" if content.startswith(_UTF_16) else "utf-8-sig")
    except UnicodeDecodeError as error:
        reason = f"{error.reason}, byte {error.start}"
        raise SettingError(f"{name} is not UTF-8 text ({reason}): save it as CSV in UTF-8") from None


def records(name: object, text: str, known: Collection[str], wanted: str) -> list[Record]:
    """Every record with something in it, the names of the columns first.

    name: of the file; wanted: what it should be, for messages; known: columns that such a file may have, by which the
    delimiter is found. Raises SettingError for what is no CSV, and where there is no record at all.
    """
    stated = _STATED_DELIMITER.match(text)
    body = text[stated.end() :] if stated else text
    delimiter = stated[1] if stated else _delimiter(body, known)
    reader = csv.reader(io.StringIO(body, newline=""), delimiter=delimiter, strict=True)
    first = 2 if stated else 1
    rows, begins = [], first
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                rows.append(Record(begins, cells))
            begins = first + reader.line_num
    except csv.Error as error:
        raise SettingError(
            f"{name} is no CSV from line {begins}: {error}: put quotes around cells and double those within them, or "
            "save it as CSV in UTF-8"
        ) from error
    if not rows:
        raise SettingError(f"{name} is empty: give {wanted}")
    return rows


def _delimiter(text: str, known: Collection[str]) -> str:
    """The sign that parts the first line into most of the columns that are known."""
    head = text.lstrip().partition("\n")[0]
    return max(",;\t", key=lambda sign: len({column_name(name) for name in head.split(sign)} & set(known)))


def column_name(cell: str) -> str:
    """A column's name as code has it: small letters, `_` for white space, quotes around it taken away."""
    return "_".join(cell.strip().strip("\"'").casefold().replace("_", " ").split())


def columns(
    name: object, head: Record, needed: Sequence[str], known: Collection[str], *, either: Sequence[str] = ()
) -> tuple[list[str], list[str]]:
    """The columns' names of a file, and notes on those that are not known. either: columns of which one is needed.

    Raises SettingError where one that is needed is not there, or one is there twice.
    """
    names = [column_name(cell) for cell in head.cells]
    missing = [column for column in needed if column not in names]
    if either and not set(either) & set(names):
        missing.insert(0, " or ".join(either))
    if missing:
        raise SettingError(
            f"{name} line {head.line}: no column {', '.join(missing)} among {', '.join(names)[:200]}: name the columns "
            f"{', '.join([*either[:1], *needed])}"
        )
    twice = sorted(column for column, count in Counter(names).items() if count > 1 and column)
    if twice:
        raise SettingError(f"{name} line {head.line}: column {', '.join(twice)} is there twice: take one of them out")
    unknown = [column for column in names if column and column not in known]
    return names, [f"{name}: column {column} is not known, and was not read" for column in unknown]
