"""Sheets of graders into the table `human_grades`: letters become systems, and what is there is joined with what comes.

All of an import is checked before anything is written, and a month's file is whole or as it was; an import that was
killed between two months is made whole by the same command.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.engine.stage import Workspace
from pipeline.errors import SettingError
from pipeline.evaluation.answers.grading_key import read_key, read_key_file
from pipeline.evaluation.answers.people import Mark
from pipeline.evaluation.answers.sheets import WANTED, Key, read_lines, read_sheet
from pipeline.evaluation.answers.texts import shown_in
from pipeline.evaluation.human.storing import PATIENCE_SECONDS, exclusive, origin_of, rows_there, write_month
from pipeline.storage.csv_reader import read_content
from pipeline.storage.data_root import DataRoot
from pipeline.storage.writing import Row
from pipeline.tables import HUMAN_GRADES

_ORDER = ("study", "grader", "label", "part", "number")
Whose = tuple[str, str, str]
"""Study, grader in small letters, label: what an import gives as a whole."""


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did. replaced: (study, grader, label) that had verdicts before; notes: what the user should
    know."""

    studies: tuple[str, ...]
    graders: tuple[str, ...]
    answers: int
    rows: int
    months: tuple[str, ...]
    replaced: tuple[Whose, ...]
    notes: tuple[str, ...]


@dataclass(slots=True)
class _Taken:
    """What the files of an import give. rows: by month and whose; origins: month → its files; keys: by study."""

    rows: dict[str, dict[Whose, list[dict[str, Any]]]] = field(default_factory=lambda: defaultdict(dict))
    origins: dict[str, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    keys: dict[str, Key] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def import_grades(
    workspace: Workspace,
    files: Sequence[Path],
    *,
    name: str | None = None,
    grader: str | None = None,
    key: Path | None = None,
    patience_seconds: float = PATIENCE_SECONDS,
) -> Imported:
    """Import sheets that graders sent back. name: the grading, where sheets do not say it; grader: likewise; key: its
    file, where it is not in the data root.

    What a grader gave to an answer replaces what that grader gave to it before; of two files, the later one counts.
    Raises SettingError with file, line and what to do where anything cannot be taken, and then nothing is imported;
    MissingInput for a grading that is not there; TransientFailure where another import does not end.
    """
    given = None if key is None else read_key_file(key)
    taken = _Taken()
    for file in files:
        content = read_content(file, WANTED)
        study = _study(file, content, name or (given.study if given else None))
        of = given or read_key(workspace.root, study)
        if of.study != study:
            raise SettingError(f"{key} is the key of {of.study}, and not of {study}: give another --key or --name")
        _take(taken, file, content, of, read_sheet(str(file), content, of, grader or ""))
    with exclusive(workspace, HUMAN_GRADES, patience_seconds):
        return _keep(workspace.root, taken)


def _study(file: Path, content: bytes, name: str | None) -> str:
    """The grading that a sheet says it is of, or else `name`. Raises SettingError where it says another one."""
    said = {study: line.place for line in read_lines(str(file), content) if (study := line.cells.get("study", ""))}
    wanted = name or min(said, default=None)
    if wanted is None:
        raise SettingError(f"{file} does not say of which grading it is: give --name")
    for study in sorted(said.keys() - {wanted}):
        raise SettingError(f"{said[study]}: it is of grading {study[:100]!r}, not of {wanted}: import that by itself")
    return wanted


def _take(taken: _Taken, file: Path, content: bytes, key: Key, marks: Sequence[Mark]) -> None:
    if not marks:
        raise SettingError(f"{file} holds no verdict and no comment: nothing of it can be imported")
    taken.keys[key.study] = key
    found = _by_answer(key, marks)
    again = sorted({f"{rows[0]['grader']} on {whose[2]}" for month, whose, rows in found if whose in taken.rows[month]})
    taken.notes += [f"{file} replaces what an earlier file has of {', '.join(again)}"] if again else []
    taken.notes += _unfilled(file, key, marks)
    for month, whose, rows in found:
        taken.rows[month][whose] = rows
        taken.origins[month] |= origin_of(file.name, content)


def _by_answer(key: Key, marks: Sequence[Mark]) -> list[tuple[str, Whose, list[dict[str, Any]]]]:
    """(Month, whose, rows) of every answer that a grader marked."""
    labels = {(of.question_id, of.system): label for label, of in key.labels.items()}
    found: dict[Whose, list[dict[str, Any]]] = defaultdict(list)
    for mark in marks:
        label = labels[mark.unit.question_id, mark.unit.system]
        found[key.study, mark.grader.casefold(), label].append(_row(key, label, mark))
    return [(key.labels[whose[2]].month, whose, rows) for whose, rows in found.items()]


def _row(key: Key, label: str, mark: Mark) -> dict[str, Any]:
    answer = key.labels[label]
    texts = answer.claims if mark.unit.part == "claim" else answer.gold
    return {
        "study": key.study,
        "grader": mark.grader,
        "question_id": mark.unit.question_id,
        "system": mark.unit.system,
        "label": label,
        "part": mark.unit.part,
        "number": texts.index(mark.unit.text) + 1,
        "text": mark.unit.text,
        "verdict": mark.verdict,
        "comment": mark.comment,
        "text_sha256": answer.text_sha256,
    }


def _unfilled(file: Path, key: Key, marks: Sequence[Mark]) -> Iterator[str]:
    """For each grader of a file, how many lines have no verdict."""
    lines = sum(len(each.claims) + len(each.gold) for each in key.labels.values())
    for grader in sorted({mark.grader for mark in marks}):
        given = sum(mark.grader == grader and mark.verdict is not None for mark in marks)
        if given < lines:
            yield f"{file}: {grader} has no verdict on {lines - given:,} of {lines:,} lines"


def _keep(root: DataRoot, taken: _Taken) -> Imported:
    spelling = _spellings(root, taken.keys)
    new = [row for answers in taken.rows.values() for rows in answers.values() for row in rows]
    for row in new:
        row["grader"] = spelling.setdefault((row["study"], row["grader"].casefold()), row["grader"])
    # What is there is read, whole, before anything is written.
    before = {month: rows_there(root, HUMAN_GRADES, month) for month in taken.rows}
    replaced: set[Whose] = set()
    for month, answers in sorted(taken.rows.items()):
        replaced |= {(row["study"], row["grader"], row["label"]) for row in before[month] if _whose(row) in answers}
        stay = [row for row in before[month] if _whose(row) not in answers]
        rows = [*stay, *(row for each in answers.values() for row in each)]
        write_month(root, HUMAN_GRADES, month, rows, _ORDER, taken.origins[month])
    return Imported(
        studies=tuple(sorted(taken.keys)),
        graders=tuple(sorted({row["grader"] for row in new})),
        answers=len({(row["study"], row["label"]) for row in new}),
        rows=len(new),
        months=tuple(sorted(taken.rows)),
        replaced=tuple(sorted(replaced)),
        notes=(*taken.notes, *_outdated(root, taken.keys.values())),
    )


def _whose(row: Row) -> Whose:
    return row["study"], row["grader"].casefold(), row["label"]


def _spellings(root: DataRoot, of: Mapping[str, Key]) -> dict[tuple[str, str], str]:
    """(Study, grader in small letters) → the name as it is kept, so that Anna and anna are one grader."""
    rows = (row for month in root.months(HUMAN_GRADES) for row in root.iterate(HUMAN_GRADES, month, [*_ORDER[:2]]))
    return {(row["study"], row["grader"].casefold()): row["grader"] for row in rows if row["study"] in of}


def _outdated(root: DataRoot, keys: Iterable[Key]) -> Iterator[str]:
    for key in sorted(keys, key=lambda key: key.study):
        shown = {month: shown_in(root, month) for month in {of.month for of in key.labels.values()}}
        changed = []
        for label, of in sorted(key.labels.items()):
            words = shown[of.month].get(of.question_id)
            if words is None or of.system not in words.answers or words.digest(of.system) != of.text_sha256:
                changed.append(label)
        if changed:
            yield (
                f"grading {key.study}: answers that were written anew since its sheets were made: {len(changed)} "
                f"({', '.join(changed[:6])}); what was graded of them is not what is there"
            )
