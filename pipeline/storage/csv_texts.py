"""CSV files from spreadsheet programs: their encoding, delimiter, records and columns.

UTF-8 with or without a mark, Excel's UTF-16, its first line `sep=;`, commas, semicolons or tabs, columns in any order.
`read_texts` reads texts of systems elsewhere, such as a chat site: answers or related-work sections.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
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


# csv takes 131,072 characters of a cell, and no text that a person would read is as long.
_MOST_CHARS = 100_000
_SYSTEM = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._:/-]{0,59}")


@dataclass(frozen=True, slots=True)
class TextKind:
    """What a file holds: the noun of a text, which names its column, and of what it is written for.

    subject_ids, subject_words: the columns that name it, by id and by its words. only_known: whether any
    other subject is a fault; else its lines are counted and skipped.
    """

    text: str
    subject: str
    subject_ids: str
    subject_words: str
    only_known: bool

    @property
    def columns(self) -> tuple[str, ...]:
        return self.subject_ids, self.subject_words, "system", self.text


@dataclass(frozen=True, slots=True)
class ImportedText:
    """A text by a system elsewhere, for the subject of an id."""

    subject_id: str
    system: str
    text: str


@dataclass(frozen=True, slots=True)
class ImportedTexts:
    """The texts of a file in the order of its lines; notes: what the user should know of it."""

    texts: tuple[ImportedText, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Line:
    """A record's cells by column, and where it begins, for messages."""

    file: Path
    number: int
    cells: Mapping[str, str]

    def fault(self, message: str) -> SettingError:
        return SettingError(f"{self.file} line {self.number}: {message}")


class _OtherSubject(Exception):
    """The line is of a subject that is not among the known ones."""


def read_texts(file: Path, kind: TextKind, subjects: Mapping[str, str], own_systems: Collection[str]) -> ImportedTexts:
    """The texts of a CSV file. subjects: id → its words; own_systems: names that only our own systems have.

    The first line names the columns, in any order: `system`, the text's, and the subject's id or its words (case and
    white space make no difference) or both. Commas, semicolons or tabs between cells; UTF-8, or Excel's UTF-16.
    Raises SettingError that names file and line, for the first fault: an unknown subject where only known ones are
    allowed, a system's name that is one of our own, two texts of one system for one subject.
    """
    wanted = f"a CSV file of {kind.text}s"
    head, *lines = records(file, decoded(file, read_content(file, wanted)), kind.columns, wanted)
    subject = (kind.subject_ids, kind.subject_words)
    header, notes = columns(file, head, ("system", kind.text), kind.columns, either=subject)
    reader = _Reader(kind, subjects, own_systems)
    for line in lines:
        reader.add(_Line(file, line.line, line.by_column(header)))
    if not reader.texts and not reader.others:
        raise SettingError(f"{file} holds no {kind.text}: write one on each line below the names of the columns")
    return ImportedTexts(tuple(reader.texts), (*notes, *reader.notes(file)))


class _Reader:
    """The texts of the lines read so far."""

    def __init__(self, kind: TextKind, subjects: Mapping[str, str], own_systems: Collection[str]) -> None:
        self.texts: list[ImportedText] = []
        self.others = 0
        """Lines of subjects that are not among the known ones."""
        self._kind, self._own_systems = kind, own_systems
        self._words = {subject_id: _key(words) for subject_id, words in subjects.items()}
        self._ids: dict[str, list[str]] = {}
        for subject_id, words in self._words.items():
            self._ids.setdefault(words, []).append(subject_id)
        self._places: dict[tuple[str, str], int] = {}
        self._spellings: dict[str, str] = {}

    def add(self, line: _Line) -> None:
        """Take a line. Raises SettingError where it is wrong."""
        if extra := line.cells[""].strip():
            raise line.fault(
                f"it has more cells than there are columns ({extra[:60]!r}): put quotes around its {self._kind.text}"
            )
        try:
            subject_id = self._subject_id(line)
        except _OtherSubject:
            self.others += 1
            return
        system, text = self._system(line), line.cells.get(self._kind.text, "")
        if len(text) > _MOST_CHARS:
            raise line.fault(f"its {self._kind.text} has {len(text):,} characters: shorten it to {_MOST_CHARS:,}")
        place = self._places.setdefault((system, subject_id), line.number)
        if place != line.number:
            raise line.fault(f"{system} wrote for {subject_id} on line {place} too: leave one of them")
        self.texts.append(ImportedText(subject_id, system, text))

    def _subject_id(self, line: _Line) -> str:
        """Raises SettingError where the line names no subject, or two; _OtherSubject for one that is skipped."""
        kind, named = self._kind, line.cells.get(self._kind.subject_ids, "").strip()
        words = _key(line.cells.get(kind.subject_words, ""))
        if not named and not words:
            raise line.fault(f"it names no {kind.subject}: fill {kind.subject_ids} or {kind.subject_words}")
        if not kind.only_known and named not in self._words and (named or words not in self._ids):
            raise _OtherSubject
        if named and named not in self._words:
            raise line.fault(f"{kind.subject_ids} {named[:100]!r} is none of the set: correct it")
        if named and words and words != self._words[named]:
            raise line.fault(f"its {kind.subject_words} is not that of {named}: leave one of the two cells empty")
        return named or self._by_words(line, words)

    def _by_words(self, line: _Line, words: str) -> str:
        ids = self._ids.get(words, [])
        if not ids:
            raise line.fault(
                f"no {self._kind.subject} of the set reads {words[:100]!r}: copy it from there, or give its id"
            )
        if len(ids) > 1:
            raise line.fault(f"{' and '.join(ids)} read alike: give {self._kind.subject_ids}")
        return ids[0]

    def _system(self, line: _Line) -> str:
        """The system's name, in the spelling of its first line, so that GPT-4 and gpt-4 are one."""
        system = " ".join(line.cells.get("system", "").split())
        if not _SYSTEM.fullmatch(system):
            raise line.fault(f"{system[:100]!r} names no system: give up to 60 letters, digits and . _ - : /")
        if system.casefold() in self._own_systems:
            raise line.fault(f"{system} is a system of citeloom: give the one that wrote it another name")
        return self._spellings.setdefault(system.casefold(), system)

    def notes(self, file: Path) -> Iterator[str]:
        """What is missing: empty texts, and subjects without one, by system; and the lines skipped."""
        kind, total = self._kind, len(self._words)
        for system in dict.fromkeys(text.system for text in self.texts):
            texts = [text for text in self.texts if text.system == system]
            empty = sum(not text.text.strip() for text in texts)
            if empty:
                yield f"{file}: {empty} of {len(texts)} {kind.text}s of {system} are empty"
            if len(texts) < total:
                yield f"{file}: {system} has {kind.text}s for {len(texts)} of {total} {kind.subject}s"
        if self.others:
            yield f"{file}: {self.others} {kind.text}s are for other {kind.subject}s"


def _key(words: str) -> str:
    return " ".join(words.split()).casefold()
