"""Answers or related-work sections written by systems elsewhere, from a CSV file."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import SettingError
from pipeline.storage.csv_reader import CsvRow, parse_csv, read_content
from pipeline.text import one_line

# csv takes 131,072 characters of a cell, and no text that a person would read is as long.
_MOST_CHARS = 100_000
_SYSTEM = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._:/-]{0,59}")


@dataclass(frozen=True, slots=True)
class TextKind:
    """A kind of texts in a file: the noun of a text, which names its column, and of its subject.

    subject_ids, subject_words: the columns that name it, by id and by its words. only_known:
    whether any other subject is a fault; else its lines are counted and skipped.
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


def read_texts(
    file: Path, kind: TextKind, subjects: Mapping[str, str], own_systems: Collection[str]
) -> ImportedTexts:
    """The texts of a CSV file. subjects: id → its words; own_systems: names that only our own
    systems have.

    Its columns are `system`, the text's, and the subject's id or its words (case and white space
    make no difference) or both. Raises SettingError for a file that cannot be read, and with file
    and line for the first fault: those of `parse_csv`, an unknown subject where only known ones are
    allowed, a system's name that is one of our own, two texts of one system for one subject.
    """
    content = read_content(file, f"a CSV file of {kind.text}s")
    reader = _Reader(kind, subjects, own_systems)
    try:
        rows = parse_csv(content, ("system", kind.text))
        for row in rows:
            reader.add(row)
    except SettingError as error:
        raise SettingError(f"{file} {error}") from None
    if not rows:
        raise SettingError(
            f"{file} holds no {kind.text}: write one on each line below the names of the columns"
        )
    unread = [name for name in rows[0].cells if name and name not in kind.columns]
    notes = [f"column {name} is not known, and was not read" for name in unread]
    return ImportedTexts(
        tuple(reader.texts), tuple(f"{file}: {note}" for note in (*notes, *reader.notes()))
    )


class _Reader:
    """The texts of the rows read so far."""

    def __init__(
        self, kind: TextKind, subjects: Mapping[str, str], own_systems: Collection[str]
    ) -> None:
        self.texts: list[ImportedText] = []
        self.others = 0
        """Rows of subjects that are not among the known ones."""
        self._kind, self._own_systems = kind, own_systems
        self._words = {subject_id: _key(words) for subject_id, words in subjects.items()}
        self._ids: dict[str, list[str]] = {}
        for subject_id, words in self._words.items():
            self._ids.setdefault(words, []).append(subject_id)
        self._places: dict[tuple[str, str], int] = {}
        self._spellings: dict[str, str] = {}

    def add(self, row: CsvRow) -> None:
        """Take a row. Raises SettingError where it is wrong."""
        extra = row.cells[""].strip()
        if extra:
            raise _fault(
                row,
                f"it has more cells than there are columns ({extra[:60]!r}): put quotes around its"
                f" {self._kind.text}",
            )
        subject_id = self._subject_id(row)
        if subject_id is None:
            self.others += 1
            return
        system, text = self._system(row), row.cells.get(self._kind.text, "")
        if len(text) > _MOST_CHARS:
            raise _fault(
                row,
                f"its {self._kind.text} has {len(text):,} characters: shorten it to"
                f" {_MOST_CHARS:,}",
            )
        place = self._places.setdefault((system, subject_id), row.number)
        if place != row.number:
            raise _fault(
                row, f"{system} wrote for {subject_id} on line {place} too: leave one of them"
            )
        self.texts.append(ImportedText(subject_id, system, text))

    def _subject_id(self, row: CsvRow) -> str | None:
        """The id of the line's subject; None for one that is skipped. Raises SettingError where the
        line names no subject, or two.
        """
        kind, named = self._kind, row.cells.get(self._kind.subject_ids, "").strip()
        words = _key(row.cells.get(kind.subject_words, ""))
        if not named and not words:
            raise _fault(
                row, f"it names no {kind.subject}: fill {kind.subject_ids} or {kind.subject_words}"
            )
        if not kind.only_known and named not in self._words and (named or words not in self._ids):
            return None
        if named and named not in self._words:
            raise _fault(row, f"{kind.subject_ids} {named[:100]!r} is none of the set: correct it")
        if named and words and words != self._words[named]:
            raise _fault(
                row,
                f"its {kind.subject_words} is not that of {named}: leave one of the two cells"
                " empty",
            )
        return named or self._by_words(row, words)

    def _by_words(self, row: CsvRow, words: str) -> str:
        ids = self._ids.get(words, [])
        if not ids:
            raise _fault(
                row,
                f"no {self._kind.subject} of the set reads {words[:100]!r}: copy it from there, or"
                " give its id",
            )
        if len(ids) > 1:
            raise _fault(row, f"{' and '.join(ids)} read alike: give {self._kind.subject_ids}")
        return ids[0]

    def _system(self, row: CsvRow) -> str:
        """The system's name, in the spelling of its first line, so that GPT-4 and gpt-4 are one."""
        system = one_line(row.cells.get("system", ""))
        if not _SYSTEM.fullmatch(system):
            raise _fault(
                row,
                f"{system[:100]!r} names no system: give up to 60 letters, digits and . _ - : /",
            )
        if system.casefold() in self._own_systems:
            raise _fault(
                row, f"{system} is a system of citeloom: give the one that wrote it another name"
            )
        return self._spellings.setdefault(system.casefold(), system)

    def notes(self) -> Iterator[str]:
        """Missing texts: empty ones, subjects without one, by system; and the rows skipped."""
        kind, total = self._kind, len(self._words)
        for system in dict.fromkeys(text.system for text in self.texts):
            texts = [text for text in self.texts if text.system == system]
            empty = sum(not text.text.strip() for text in texts)
            if empty:
                yield f"{empty} of {len(texts)} {kind.text}s of {system} are empty"
            if len(texts) < total:
                yield f"{system} has {kind.text}s for {len(texts)} of {total} {kind.subject}s"
        if self.others:
            yield f"{self.others} {kind.text}s are for other {kind.subject}s"


def _fault(row: CsvRow, message: str) -> SettingError:
    return SettingError(f"line {row.number}: {message}")


def _key(words: str) -> str:
    return one_line(words).casefold()
