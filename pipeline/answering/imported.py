"""Answers made elsewhere, such as on a chat site, from a CSV file, so that they can be graded beside our own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.answering.answered import Answered, plain_answer
from pipeline.answering.questions import Question
from pipeline.answering.systems import SYSTEMS
from pipeline.errors import SettingError
from pipeline.storage.csv_reader import Record, column_name, decoded, read_content, records, twice_named

_WANTED = "a CSV file of answers"
# csv takes 131,072 characters of a cell, and no answer that a person would grade is as long.
_MOST_CHARS = 100_000
# Of the faults of a file, those that are told at once.
_TOLD = 5
_NEEDED = ("system", "answer")
_NAMES = ("question_id", "question", *_NEEDED)
_SYSTEM = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._:/-]{0,59}")
# Answers that a judge is tried by bear such names, see `evaluation.answers.controls`.
_CONTROLS = "control_"


@dataclass(frozen=True, slots=True)
class ImportedAnswer:
    """What a system elsewhere answered to a question of a set. An empty cell is an answer that abstains."""

    question_id: str
    system: str
    answered: Answered


@dataclass(frozen=True, slots=True)
class Imported:
    """The answers of a file in the order of its lines; notes: what the user should know of it."""

    answers: tuple[ImportedAnswer, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Line:
    """A record's cells by column, and where it begins, for messages."""

    number: int
    cells: Mapping[str, str]

    def fault(self, what: str) -> SettingError:
        return SettingError(f"line {self.number}: {what}")


def read_imported(file: Path, questions: Sequence[Question]) -> Imported:
    """The answers of a CSV file to questions of a set.

    The first line names the columns, in any order: `system`, `answer`, and `question_id` or `question` (its text; case
    and white space make no difference) or both. Commas, semicolons or tabs between cells; UTF-8, or Excel's UTF-16.
    Raises SettingError that names file and line, for the first five faults at once: a question that is none of the
    set, a system's name that is one of our own, two answers of one system to one question.
    """
    text = decoded(file, read_content(file, _WANTED))
    header, lines, notes = _columns(file, records(file, text, _NAMES, _WANTED))
    _check_header(file, header)
    known = _Known(questions)
    found: list[ImportedAnswer] = []
    faults: list[str] = []
    places: dict[tuple[str, str], int] = {}
    spelt: dict[str, str] = {}
    for line in lines:
        try:
            answer = _answer(line, known, spelt)
            _claim_place(places, answer, line)
        except SettingError as error:
            faults.append(str(error))
        else:
            found.append(answer)
    _refuse(file, faults)
    if not found:
        raise SettingError(f"{file} holds no answer: write one on each line below the names of the columns")
    return Imported(tuple(found), (*notes, *_notes(file, found, questions)))


def _refuse(file: Path, faults: Sequence[str]) -> None:
    if faults:
        more = f"; and {len(faults) - _TOLD} more" if len(faults) > _TOLD else ""
        raise SettingError(f"{file}: {'; '.join(faults[:_TOLD])}{more}")


class _Known:
    """The questions of a set, by id and by text."""

    def __init__(self, questions: Iterable[Question]) -> None:
        self._texts = {each.id: _key(each.question) for each in questions}
        self._ids: dict[str, list[str]] = {}
        for each, text in self._texts.items():
            self._ids.setdefault(text, []).append(each)

    def id_of(self, line: _Line) -> str:
        """The id of the question that a line answers. Raises SettingError where it names none, or two."""
        named, text = line.cells.get("question_id", "").strip(), _key(line.cells.get("question", ""))
        if not named and not text:
            raise line.fault("it names no question: fill question_id or question")
        if named and named not in self._texts:
            raise line.fault(f"question_id {named[:100]!r} is none of the set: mend it")
        if named and text and text != self._texts[named]:
            raise line.fault(f"its question is not that of {named}: leave one of the two cells empty")
        return named or self._by_text(line, text)

    def _by_text(self, line: _Line, text: str) -> str:
        ids = self._ids.get(text, [])
        if not ids:
            raise line.fault(f"no question of the set reads {text[:100]!r}: copy it from there, or give its id")
        if len(ids) > 1:
            raise line.fault(f"{' and '.join(ids)} read alike: give question_id")
        return ids[0]


def _key(text: str) -> str:
    return " ".join(text.split()).casefold()


def _answer(line: _Line, known: _Known, spelt: dict[str, str]) -> ImportedAnswer:
    """spelt: names of systems by their small letters, so that GPT-4 and gpt-4 are one."""
    if extra := line.cells[""].strip():
        raise line.fault(f"it has more cells than there are columns ({extra[:60]!r}): put quotes around its answer")
    question_id = known.id_of(line)
    system = " ".join(line.cells.get("system", "").split())
    if not _SYSTEM.fullmatch(system):
        raise line.fault(f"{system[:100]!r} names no system: give up to 60 letters, digits and . _ - : /")
    if system.casefold() in SYSTEMS or system.casefold().startswith(_CONTROLS):
        raise line.fault(f"{system} is a system of citeloom: name the one that answered otherwise, such as chat-site")
    text = line.cells.get("answer", "")
    if len(text) > _MOST_CHARS:
        raise line.fault(f"its answer has {len(text):,} characters: shorten it to {_MOST_CHARS:,}")
    return ImportedAnswer(question_id, spelt.setdefault(system.casefold(), system), plain_answer(text))


def _claim_place(places: dict[tuple[str, str], int], answer: ImportedAnswer, line: _Line) -> None:
    """Keep where a system's answer to a question stands. Raises SettingError where there is one already."""
    key = answer.system, answer.question_id
    if key in places:
        raise line.fault(f"{answer.system} answers {answer.question_id} on line {places[key]} too: leave one of them")
    places[key] = line.number


def _columns(file: Path, found: Sequence[Record]) -> tuple[list[str], Iterator[_Line], tuple[str, ...]]:
    """The columns' names, the lines below them, and a note on columns that are not read."""
    header = [column_name(name) for name in found[0].cells]
    others = [name for name in header if name and name not in _NAMES]
    notes = (f"{file}: columns that are not read: {', '.join(others)}",) if others else ()
    lines = (_Line(each.line, each.by_column(header)) for each in found[1:])
    return header, lines, notes


def _check_header(file: Path, header: Sequence[str]) -> None:
    lacking = [name for name in _NEEDED if name not in header]
    if "question_id" not in header and "question" not in header:
        lacking.insert(0, "question_id or question")
    if lacking:
        raise SettingError(
            f"{file}: its first line names no column {', '.join(lacking)} (it reads {', '.join(header)[:200]}): write "
            f"question_id,system,answer there"
        )
    twice = [name for name in twice_named(header) if name in _NAMES]
    if twice:
        raise SettingError(f"{file} has the column {', '.join(twice)} twice: leave one of them")


def _notes(file: Path, found: Sequence[ImportedAnswer], questions: Sequence[Question]) -> Iterator[str]:
    """What is not answered: empty answers, and questions without one, by system."""
    for system in dict.fromkeys(each.system for each in found):
        own = [each for each in found if each.system == system]
        empty = sum(each.answered.abstained for each in own)
        if empty:
            yield f"{file}: {empty} of {len(own)} answers of {system} are empty: they count as abstentions"
        left = len(questions) - len(own)
        if left:
            yield f"{file}: {system} answers {len(own)} of {len(questions)} questions; the other {left} are not graded"
