"""Ratings into the table `human_ratings`: letters become systems, and what is there already is joined with what comes.

All of an import is checked before anything is written, and a month's file is whole or as it was; an import that was
killed between two months is made whole by the same command.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.engine.stage import Workspace
from pipeline.errors import SettingError
from pipeline.evaluation.human.returned import Line, Returned, read_returned, refuse
from pipeline.evaluation.human.storing import PATIENCE_SECONDS, exclusive, origin_of, rows_there, write_month
from pipeline.evaluation.human.study import Study, StudyTask, read_key, text_digest
from pipeline.related_work.written import written
from pipeline.storage.data_root import DataRoot
from pipeline.storage.writing import Row
from pipeline.tables import HUMAN_RATINGS

_ORDER = ("study", "rater", "task_id", "label")


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did. replaced: (study, rater, task) that had ratings before; notes: what the user should know."""

    studies: tuple[str, ...]
    raters: tuple[str, ...]
    tasks: int
    rows: int
    months: tuple[str, ...]
    replaced: tuple[tuple[str, str, str], ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Rating:
    """A line with what its letter stands for."""

    month: str
    task: str
    row: dict[str, Any]

    @property
    def whose(self) -> tuple[str, str, str]:
        """Study, rater and task, the rater's name in small letters: what an import gives as a whole."""
        return self.row["study"], self.row["rater"].casefold(), self.row["task_id"]


def import_ratings(
    workspace: Workspace,
    files: Sequence[Path],
    *,
    name: str | None = None,
    rater: str | None = None,
    patience_seconds: float = PATIENCE_SECONDS,
) -> Imported:
    """Import files that raters sent back. name: the study, where the files do not say it; rater: likewise.

    What a rater gave to a task replaces what that rater gave to it before; of two files, the later one counts. A task
    for which nothing was entered is left out. Raises SettingError with file, line and what to do where anything cannot
    be taken, and then nothing is imported; MissingInput for a study that is not there; TransientFailure where another
    import does not end.
    """
    root, notes = workspace.root, []
    taken: dict[tuple[str, str, str], list[_Rating]] = {}
    origins: dict[str, dict[str, str]] = defaultdict(dict)
    for file in files:
        returned = read_returned(file, rater)
        notes += returned.notes
        found, told = _ratings(root, returned, name)
        notes += told
        again = sorted(f"{each[0].row['rater']} on {each[0].task}" for whose, each in found.items() if whose in taken)
        notes += [f"{file} replaces what an earlier file has of {', '.join(again)}"] if again else []
        taken |= found
        for month in {rating.month for each in found.values() for rating in each}:
            origins[month] |= origin_of(file.name, file.read_bytes())
    with exclusive(workspace, HUMAN_RATINGS, patience_seconds):
        return _keep(root, [rating for each in taken.values() for rating in each], origins, notes)


def _ratings(
    root: DataRoot, returned: Returned, name: str | None
) -> tuple[dict[tuple[str, str, str], list[_Rating]], list[str]]:
    """The ratings of one file by whose and for which task, and notes. Raises as `import_ratings` does."""
    keys = _studies(root, returned, name)
    by_task: dict[tuple[str, str, str], list[Line]] = defaultdict(list)
    faults = []
    for line in returned.lines:
        study = keys[line.study or name or ""]
        faults += list(_strange(line, study))
        by_task[study.study, line.rater.casefold(), line.task].append(line)
    refuse(faults + [fault for lines in by_task.values() for fault in _contradictions(lines)])
    full = {whose: lines for whose, lines in by_task.items() if not all(line.empty for line in lines)}
    if not full:
        raise SettingError(f"{returned.file} holds no mark, no choice and no comment: nothing of it can be imported")
    made = [_of_task(keys[study], lines) for (study, _, _), lines in full.items()]
    blank = len(by_task) - len(full)
    notes = [f"{returned.file}: nothing was entered for {blank} of {len(by_task)} tasks"] if blank else []
    return {ratings[0].whose: ratings for ratings in made}, notes


def _studies(root: DataRoot, returned: Returned, name: str | None) -> dict[str, Study]:
    """The keys of the studies that a file is of, by name."""
    wanted: dict[str, str] = {}
    for line in returned.lines:
        if line.study is None and name is None:
            raise SettingError(f"{line.place}: it does not say of which study it is: give --name")
        if name is not None and line.study not in (None, name):
            raise SettingError(f"{line.place}: it is of study {line.study}, not of {name}: leave --name out")
        wanted.setdefault(line.study or name or "", line.place)
    if not wanted:
        raise SettingError(f"{returned.file} has no line of ratings: give a file that a rater sent back")
    return {study: read_key(root, study) for study in wanted}


def _strange(line: Line, study: Study) -> Iterator[str]:
    task = _task(study, line.task)
    if task is None:
        known = f"T01 to {study.tasks[-1].task}"
        yield f"{line.place}: task {line.task!r} is none of study {study.study} ({known}): mend it"
    elif line.label not in task.labels:
        yield f"{line.place}: label {line.label!r} is none of {line.task} ({', '.join(task.labels)}): mend it"


def _task(study: Study, name: str) -> StudyTask | None:
    return next((task for task in study.tasks if task.task == name), None)


def _contradictions(lines: Sequence[Line]) -> Iterator[str]:
    """Faults between the lines of one rater on one task of one file."""
    first: dict[str, Line] = {}
    for line in lines:
        if line.label in first:
            yield f"{line.place}: {line.rater} has section {line.label} of {line.task} on {first[line.label].place} too"
        first.setdefault(line.label, line)
    chosen = [line for line in lines if line.preferred]
    if len(chosen) > 1:
        places = " and ".join(line.place for line in chosen)
        yield f"{places}: {lines[0].rater} prefers {len(chosen)} sections of {lines[0].task}: leave one x"


def _of_task(study: Study, lines: Sequence[Line]) -> list[_Rating]:
    """What one rater gave to one task. Without a choice, nothing is preferred and nothing is not."""
    task = _task(study, lines[0].task)
    if task is None:
        raise SettingError(f"{lines[0].place}: task {lines[0].task} is none of study {study.study}")
    chose = any(line.preferred for line in lines)
    return [_Rating(task.month, task.task, _row(study, task, line, chose)) for line in lines]


def _row(study: Study, task: StudyTask, line: Line, chose: bool) -> dict[str, Any]:
    return {
        "study": study.study,
        "rater": line.rater,
        "task_id": task.task_id,
        "system": task.labels[line.label].system,
        "label": line.label,
        **line.marks,
        "preferred": bool(line.preferred) if chose else None,
        "comment": line.comment,
        "text_sha256": task.labels[line.label].text_sha256,
    }


def _keep(
    root: DataRoot, ratings: Sequence[_Rating], origins: Mapping[str, Mapping[str, str]], notes: Sequence[str]
) -> Imported:
    spelling = _spellings(root, {rating.row["study"] for rating in ratings})
    replaced: set[tuple[str, str, str]] = set()
    by_month: dict[str, list[_Rating]] = defaultdict(list)
    for rating in ratings:
        of_study = rating.row["study"], rating.row["rater"].casefold()
        rating.row["rater"] = spelling.setdefault(of_study, rating.row["rater"])
        by_month[rating.month].append(rating)
    # What is there is read, whole, before anything is written.
    before = {month: rows_there(root, HUMAN_RATINGS, month) for month in by_month}
    for month, new in sorted(by_month.items()):
        whose = {rating.whose: (rating.row["study"], rating.row["rater"], rating.task) for rating in new}
        replaced |= {whose[_whose(row)] for row in before[month] if _whose(row) in whose}
        stay = [row for row in before[month] if _whose(row) not in whose]
        write_month(root, HUMAN_RATINGS, month, [*stay, *(rating.row for rating in new)], _ORDER, origins[month])
    return Imported(
        studies=tuple(sorted({rating.row["study"] for rating in ratings})),
        raters=tuple(sorted({rating.row["rater"] for rating in ratings})),
        tasks=len({(rating.row["study"], rating.task) for rating in ratings}),
        rows=len(ratings),
        months=tuple(sorted(by_month)),
        replaced=tuple(sorted(replaced)),
        notes=(*notes, *_outdated(root, {rating.row["study"] for rating in ratings})),
    )


def _whose(row: Row) -> tuple[str, str, str]:
    return row["study"], row["rater"].casefold(), row["task_id"]


def _spellings(root: DataRoot, of: Iterable[str]) -> dict[tuple[str, str], str]:
    """(study, rater in small letters) → the rater's name as it is kept, so that Anna and anna are one rater."""
    wanted = set(of)
    rows = (row for month in root.months(HUMAN_RATINGS) for row in root.iterate(HUMAN_RATINGS, month, [*_ORDER[:2]]))
    return {(row["study"], row["rater"].casefold()): row["rater"] for row in rows if row["study"] in wanted}


def changed_since(root: DataRoot, study: Study) -> list[tuple[str, str]]:
    """(task, system) whose section is not, or no longer, the text that raters of the study were given."""
    shown = {
        (task.task_id, section.system): (task.task, section.text_sha256)
        for task in study.tasks
        for section in task.labels.values()
    }
    for month in study.months:
        for row in written(root, month, ["task_id", "system", "text"]):
            name = row["task_id"], row["system"]
            if name in shown and shown[name][1] == text_digest(row["text"]):
                del shown[name]
    return sorted((task, system) for (_, system), (task, _) in shown.items())


def _outdated(root: DataRoot, names: Iterable[str]) -> Iterator[str]:
    for name in sorted(names):
        changed = changed_since(root, read_key(root, name))
        if changed:
            yield (
                f"study {name}: {len(changed)} sections were written anew since it was exported, so what was rated is "
                f"not what is there: {', '.join(f'{task} {system}' for task, system in changed[:6])}"
            )
