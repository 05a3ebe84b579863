"""The sheet of people who grade answers: made from a judge's grades without its verdicts, and read when it comes back.

A grader sees questions, answers under letters that are shuffled for each question, the claims of each and the gold
claims, and writes a verdict into each line. Which system a letter is stands in the key alone, which is not sent. Not
here: which answers are taken (`choosing`), where files lie (`grading_key`), and what marks add up to (`people`).
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from pipeline.errors import SettingError
from pipeline.evaluation.answers.grades import Grade
from pipeline.evaluation.answers.people import SILENT, VERDICTS, Mark, Part, Unit
from pipeline.evaluation.cited import printable
from pipeline.evaluation.human.cells import csv_bytes, unguarded
from pipeline.evaluation.human.returned import LONGEST_NAME, refuse
from pipeline.evaluation.human.study import shuffled
from pipeline.storage.csv_reader import columns, decoded, records

COLUMNS = (
    "study", "grader", "label", "part", "number", "verdict", "comment", "text", "question", "answer", "papers",
)  # fmt: skip
"""Columns of the sheet; the last four are for the grader's eyes."""
WANTED = "a sheet that a grader sent back"
_NEEDED = ("grader", "label", "part", "number", "verdict")


class Labelled(BaseModel):
    """What is behind one letter: whose answer to which question, and the texts that are marked, in order.

    month: of the question. text_sha256: of question and answer, as `digest` gives it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    month: str
    question_id: str
    system: str
    text_sha256: str
    claims: tuple[str, ...]
    gold: tuple[str, ...]

    def unit(self, part: Part, number: int) -> Unit | None:
        """What a line is on, its number from 1; None for one that there is not."""
        texts = self.claims if part == "claim" else self.gold
        return Unit(self.question_id, self.system, part, texts[number - 1]) if 1 <= number <= len(texts) else None


class Key(BaseModel):
    """The key of a sheet: what graders must not know. `labels`: label, such as Q03-B → answer."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["citeloom-answer-grades-1"] = "citeloom-answer-grades-1"
    study: str
    seed: int
    labels: Annotated[Mapping[str, Labelled], Field(min_length=1)]

    def file_bytes(self) -> bytes:
        """The key as its file holds it."""
        return f"{self.model_dump_json(indent=1)}\n".encode()


@dataclass(frozen=True, slots=True)
class Shown:
    """The words of a question and of each system's answer to it, which grades do not hold.

    month: of the question; papers: title and address of those that it is about.
    """

    question: str
    answers: Mapping[str, str]
    month: str
    papers: tuple[str, ...] = ()

    def digest(self, system: str) -> str:
        """SHA-256 of the question and a system's answer: what tells that people graded another text than is there."""
        return hashlib.sha256(f"{self.question}\0{self.answers[system]}".encode()).hexdigest()


def make_key(study: str, grades: Iterable[Grade], seed: int, shown: Mapping[str, Shown]) -> Key:
    """The answers of one judge's grades in shuffled order, those left out of which people have nothing to mark: the
    ones that abstained or claim nothing.

    shown: question id → its words and those of its answers. Raises SettingError where none is left, or over 26 systems
    answered a question.
    """
    by_question: dict[str, dict[str, Grade]] = defaultdict(dict)
    for grade in grades:
        if grade.outcome not in SILENT:
            by_question[grade.question_id][grade.system] = grade
    labels = {}
    for number, question in enumerate(shuffled(seed, "questions", by_question), 1):
        of = by_question[question]
        if len(of) > len(ascii_uppercase):
            raise SettingError(f"{len(of)} systems answered {question}: {len(ascii_uppercase)} at most have a letter")
        for letter, system in zip(ascii_uppercase, shuffled(seed, question, of), strict=False):
            labels[f"Q{number:02}-{letter}"] = _labelled(of[system], shown[question])
    if not labels:
        raise SettingError("no answer has anything to grade: all abstained, or claim nothing")
    return Key(study=study, seed=seed, labels=labels)


def _labelled(grade: Grade, shown: Shown) -> Labelled:
    return Labelled(
        month=shown.month,
        question_id=grade.question_id,
        system=grade.system,
        text_sha256=shown.digest(grade.system),
        claims=tuple(each.claim for each in grade.claims),
        gold=tuple(each.claim for each in grade.gold),
    )


def sheet(key: Key, shown: Mapping[str, Shown], grader: str = "") -> bytes:
    """The CSV file that a grader gets: one line for each claim and gold claim of each answer, no verdict filled in.

    shown: question id → its words and those of its answers. grader: a name to fill in; whoever has one gets the
    questions in an order of their own, since who grades the last ones is tired, and all would be tired of the same.
    """
    return csv_bytes([COLUMNS, *(line for label in order(key, grader) for line in _lines(key, label, shown, grader))])


def order(key: Key, grader: str) -> list[str]:
    """The labels as a grader gets them: the answers to one question side by side."""
    of_question: dict[str, list[str]] = defaultdict(list)
    for label, answer in key.labels.items():
        of_question[answer.question_id].append(label)
    questions = shuffled(key.seed, f"sheet of {grader}", of_question) if grader else of_question
    return [label for question in questions for label in of_question[question]]


def _lines(key: Key, label: str, shown: Mapping[str, Shown], grader: str) -> Iterator[list[str]]:
    of = key.labels[label]
    words = shown[of.question_id]
    parts: tuple[tuple[Part, Sequence[str]], ...] = (("claim", of.claims), ("gold", of.gold))
    for part, texts in parts:
        for number, text in enumerate(texts, 1):
            seen = (text, words.question, words.answers[of.system], " ; ".join(words.papers))
            told = [" ".join(printable(each).split()) for each in seen]
            yield [key.study, grader, label, part, str(number), "", "", *told]


def read_sheet(name: str, content: bytes, key: Key, grader: str = "") -> list[Mark]:
    """The marks of a sheet that came back; lines with neither verdict nor comment are passed over.

    name: of the file, for messages. grader: whose marks they are where no line says. Raises SettingError that names
    each line that cannot be read.
    """
    lines = read_lines(name, content)
    named = {each for line in lines if (each := _grader(line))}
    alone = next(iter(named)) if len(named) == 1 else " ".join(grader.split())
    marks, faults = [], []
    for line in lines:
        if line.filled:
            read = _mark(line, key, _grader(line) or alone)
            if isinstance(read, Mark):
                marks.append(read)
            else:
                faults.append(f"{line.place}: {read}")
    refuse([*faults, *_twice(name, marks)])
    return marks


def _twice(name: str, marks: Sequence[Mark]) -> list[str]:
    counted = Counter((mark.grader.casefold(), mark.unit) for mark in marks)
    again = {key: mark for mark in marks if counted[key := (mark.grader.casefold(), mark.unit)] > 1}
    return [
        f"{name}: {each.grader} marks {each.unit.part} {each.unit.text[:60]!r} twice: leave one line"
        for each in again.values()
    ]


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a sheet: its file and line, for messages, and its cells by column, those in none under no name."""

    place: str
    cells: Mapping[str, str]

    @property
    def filled(self) -> bool:
        """Whether a grader entered anything."""
        return bool(self.cells["verdict"] or self.cells.get("comment"))


def read_lines(name: str, content: bytes) -> list[Line]:
    """Every line of a sheet, whatever its study. Raises SettingError where it is no sheet."""
    head, *rest = records(name, decoded(name, content), COLUMNS, WANTED)
    header, _ = columns(name, head, _NEEDED, COLUMNS)
    stripped = ({column: cell.strip() for column, cell in each.by_column(header).items()} for each in rest)
    return [Line(f"{name} line {each.line}", cells) for each, cells in zip(rest, stripped, strict=True)]


def _grader(line: Line) -> str:
    return " ".join(unguarded(line.cells["grader"]).split())


def _mark(line: Line, key: Key, grader: str) -> Mark | str:
    """The mark of a line, or what is wrong with it."""
    cells = line.cells
    label, verdict = cells["label"].upper(), _verdict(cells["verdict"])
    part = next((part for part in VERDICTS if part == cells["part"].casefold()), None)
    if fault := _fault_of_line(line, key, grader):
        return fault
    if part is None:
        return f"part is {cells['part'][:40]!r}: keep it as claim or gold"
    if verdict and verdict not in VERDICTS[part]:
        return f"verdict is {cells['verdict'][:40]!r}: write one of {', '.join(VERDICTS[part])}, or leave it empty"
    number = cells["number"].removesuffix(".0").removesuffix(",0")
    unit = key.labels[label].unit(part, int(number)) if number.isdecimal() and len(number) < 5 else None
    if unit is None:
        return f"{label} has no {part} {cells['number'][:40]!r}: keep the sheet's column number as it is"
    return Mark(grader, unit, verdict or None, unguarded(cells.get("comment", "")).strip() or None)


def _fault_of_line(line: Line, key: Key, grader: str) -> str | None:
    """What is wrong with a line before its verdict is looked at."""
    cells = line.cells
    if not grader:
        return "the grader is not named: write the name into the column grader"
    if len(grader) > LONGEST_NAME or not grader.isprintable():
        return f"grader is {grader[:LONGEST_NAME]!r}: give a name of {LONGEST_NAME} printable characters at most"
    if cells[""]:
        return f"it has more cells than there are columns ({cells[''][:40]!r}): put quotes around its comment"
    if cells["label"].upper() not in key.labels:
        return f"there is no answer {cells['label'][:40]!r} in {key.study}: keep the sheet's column label as it is"
    return None


def _verdict(cell: str) -> str:
    return "_".join(cell.casefold().replace("_", " ").split())
