"""Import of the sheets and forms that annotators send back: files are checked, letters become systems, rows are added.

A file is CSV of the form, or of a spreadsheet program: with a byte order mark or without, commas, semicolons or tabs
between cells, columns in any order. It is of one study and one annotator, and its faults are reported together.
All files are checked before anything is written, and a month's file is complete or as it was; an import that was killed
between two months is completed by the same command.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline import __version__
from pipeline.engine.locks import month_lock
from pipeline.engine.stage import Workspace
from pipeline.errors import SettingError
from pipeline.evaluation.annotation.export import unguarded
from pipeline.evaluation.annotation.grades import GRADES
from pipeline.evaluation.annotation.ratings import RATINGS
from pipeline.evaluation.annotation.study import Entry, Schema, Study, read_key, study_names
from pipeline.storage.csv_texts import Record, column_name, columns, decoded, read_content, records
from pipeline.storage.data_root import DataRoot
from pipeline.storage.provenance import Provenance, read_provenance
from pipeline.storage.writing import MonthWriter, Row
from pipeline.tables import Table

SCHEMAS: Mapping[str, Schema] = {schema.name: schema for schema in (RATINGS, GRADES)}
_KNOWN = {column for schema in SCHEMAS.values() for column in schema.columns}
_WANTED = "a file that an annotator sent back"
_LONGEST_NAME = 100
_FAULTS_REPORTED = 10


@dataclass(frozen=True, slots=True)
class Line:
    """What was filled in for one unit. place: file and line, for messages. values: column → value, None if empty."""

    place: str
    unit: str
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Returned:
    """A file: its study, its annotator, its lines, its digest, and what the user should know of it."""

    file: Path
    study: Study
    annotator: str
    lines: tuple[Line, ...]
    sha256: str
    notes: tuple[str, ...]


def read_returned(root: DataRoot, file: Path, *, name: str | None = None, annotator: str | None = None) -> Returned:
    """Read a file that an annotator sent back. name: the study, if the file does not say it; annotator: in place of the
    name in the file.

    Raises SettingError with the file, each line that cannot be read, its column and what is allowed; MissingInput for
    a study that is not there.
    """
    content = read_content(file, _WANTED)
    head, *rest = records(file, decoded(file, content), _KNOWN, _WANTED)
    header = [column_name(cell) for cell in head.cells]
    cells = {f"{file} line {record.line}": _stripped(record, header) for record in rest}
    study = read_key(root, _study_name(file, cells, name))
    schema = SCHEMAS[study.kind]
    _, notes = columns(file, head, ("unit", *schema.filled_in[:-1]), schema.columns)
    who = _annotator(file, cells, annotator)
    faults: list[str] = []
    units = {unit.casefold(): unit for unit in study.units}
    lines = []
    for place, row in cells.items():
        unit = units.get(row["unit"].casefold())
        faults += _faults_of_place(place, row, unit, next(iter(study.units)))
        if unit is not None:
            lines.append(Line(place, unit, _values(place, row, schema.entries[study.units[unit].part], faults)))
    faults += _contradictions(lines, study, schema)
    if faults:
        more = [f"and {len(faults) - _FAULTS_REPORTED} more faults"] if len(faults) > _FAULTS_REPORTED else []
        raise SettingError("\n".join([*faults[:_FAULTS_REPORTED], *more]))
    return Returned(file, study, who, tuple(lines), hashlib.sha256(content).hexdigest(), tuple(notes))


def _stripped(record: Record, header: Sequence[str]) -> dict[str, str]:
    return {name: cell.strip() for name, cell in record.by_column(header).items()}


def _study_name(file: Path, cells: Mapping[str, Mapping[str, str]], name: str | None) -> str:
    for place, row in cells.items():
        study = row.get("study", "")
        if study and study != (name := name or study):
            raise SettingError(f"{place}: it is of study {study[:100]!r}, not of {name}: import that by itself")
    if name is None:
        raise SettingError(f"{file} does not say of which study it is: give --name")
    return name


def _annotator(file: Path, cells: Mapping[str, Mapping[str, str]], override: str | None) -> str:
    """The annotator of a file: a name on one line counts for all, as nobody should have to write it forty times."""
    names: dict[str, str] = {}
    for place, row in cells.items():
        names.setdefault(" ".join(unguarded(row.get("annotator", "")).split()), place)
    names.pop("", None)
    if override is not None:
        names = {" ".join(override.split()): "--annotator"}
    name, place = next(iter(names.items()), ("", str(file)))
    for other, other_place in names.items():
        if other.casefold() != name.casefold():
            raise SettingError(
                f"{other_place}: annotator is {other[:100]!r}, and {name[:100]!r} on {place}: split the file, or give "
                "--annotator"
            )
    if not name:
        raise SettingError(f"{file}: the annotator is not named: fill in the column annotator, or give --annotator")
    if len(name) > _LONGEST_NAME or not name.isprintable():
        raise SettingError(f"{place}: annotator is {name[:100]!r}: give {_LONGEST_NAME} printable characters at most")
    return name


def _faults_of_place(place: str, cells: Mapping[str, str], unit: str | None, example: str) -> Iterator[str]:
    if cells[""]:
        yield f"{place}: it has more cells than there are columns ({cells[''][:40]!r}): put quotes around its comment"
    if unit is None:
        yield f"{place}: unit is {cells['unit'][:40]!r}: keep the units of the sheet, such as {example}"


def _values(place: str, cells: Mapping[str, str], entries: Sequence[Entry], faults: list[str]) -> dict[str, Any]:
    """Column → value of a line; what cannot be read is added to `faults`."""
    values: dict[str, Any] = {"comment": unguarded(cells.get("comment", "")).strip() or None}
    for entry in entries:
        try:
            values[entry.name] = entry.value(cells[entry.name])
        except ValueError as error:
            faults.append(f"{place}: {error}")
    return values


def _contradictions(lines: Sequence[Line], study: Study, schema: Schema) -> Iterator[str]:
    counted = Counter(line.unit for line in lines)
    for unit in (unit for unit, count in counted.items() if count > 1):
        places = " and ".join(line.place for line in lines if line.unit == unit)
        yield f"{places}: unit {unit} is there twice: leave one line"
    best = [line for line in lines if line.values.get(schema.best)]
    for item in study.items:
        places = " and ".join(line.place for line in best if study.units[line.unit].item == item)
        if " and " in places:
            yield f"{places}: {schema.best} is marked more than once in {item}: leave one"


Group = tuple[str, ...]
"""Study, annotator in small letters, and what `Schema.group` names: what an import replaces as a whole."""


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did. replaced: rows that the same person had given before; notes: what the user should know."""

    studies: tuple[str, ...]
    annotators: tuple[str, ...]
    rows: int
    replaced: int
    tables: Mapping[str, tuple[str, ...]]
    notes: tuple[str, ...]


@dataclass(slots=True)
class _Month:
    """New rows of one month of a table. files: name with a piece of its digest → digest."""

    schema: Schema
    groups: dict[Group, list[dict[str, Any]]] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)


def import_files(
    workspace: Workspace,
    files: Sequence[Path],
    *,
    name: str | None = None,
    annotator: str | None = None,
) -> Imported:
    """Import files that annotators sent back. name and annotator: as for `read_returned`.

    What a person gave to a group (a task, an answer) replaces what the same person gave to it before; of two files,
    the later one counts. Lines without any entry are left out. Raises SettingError with file, line and column where
    anything cannot be read, and then nothing is imported; MissingInput for a study that is not there. Waits while
    another import runs.
    """
    root = workspace.root
    returned = [read_returned(root, file, name=name, annotator=annotator) for file in files]
    months: dict[tuple[str, str], _Month] = {}
    notes = [note for each in returned for note in _add(months, each)]
    with month_lock(workspace, "annotations", "all"):
        _spell_annotators(root, months)
        # All earlier rows are read, and so known to be sound, before anything is written.
        before = {key: _rows(root, month.schema.table, key[1]) for key, month in months.items()}
        replaced = 0
        for key, month in sorted(months.items()):
            stay = [row for row in before[key] if month.schema.group_of(row) not in month.groups]
            replaced += len(before[key]) - len(stay)
            _write(root, key[1], month, stay)
    rows = [(month.schema, row) for month in months.values() for group in month.groups.values() for row in group]
    return Imported(
        studies=tuple(sorted({file.study.study for file in returned})),
        annotators=tuple(sorted({row[schema.annotator] for schema, row in rows})),
        rows=len(rows),
        replaced=replaced,
        tables={table: tuple(sorted(month for of, month in months if of == table)) for table, _ in sorted(months)},
        notes=tuple(notes),
    )


def _add(months: dict[tuple[str, str], _Month], returned: Returned) -> Iterator[str]:
    """Add a file's rows to their months; yield notes."""
    yield from returned.notes
    study, schema = returned.study, SCHEMAS[returned.study.kind]
    rows = [(line.unit, schema.row(study.study, returned.annotator, study.units[line.unit], values))
            for line, values in _filled(returned.lines, study, schema)]  # fmt: skip
    if not rows:
        raise SettingError(f"{returned.file} has no entry: nothing of it can be imported")
    by_month: dict[str, dict[Group, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for unit, row in rows:
        by_month[study.units[unit].month][schema.group_of(row)].append(row)
    for month, groups in by_month.items():
        target = months.setdefault((schema.table.name, month), _Month(schema))
        for group in sorted(groups.keys() & target.groups.keys()):
            yield f"{returned.file} replaces what an earlier file has of {returned.annotator} on {group[-1]}"
        target.groups |= groups
        # Files that come back often have the same name.
        target.files[f"{returned.file.name} {returned.sha256[:8]}"] = returned.sha256
    filled, cells = _progress(schema, study, [row for _, row in rows])
    if filled < cells:
        yield f"{returned.file}: {returned.annotator} filled in {filled:,} of {cells:,} cells"


def _filled(lines: Sequence[Line], study: Study, schema: Schema) -> Iterator[tuple[Line, Mapping[str, Any]]]:
    """The lines with an entry. Where an item has a best label, the others are marked as not the best."""
    decided = {study.units[line.unit].item for line in lines if line.values.get(schema.best)}
    for line in lines:
        values = dict(line.values)
        if schema.best:
            values[schema.best] = bool(values[schema.best]) if study.units[line.unit].item in decided else None
        if any(value is not None for value in values.values()):
            yield line, values


def _progress(schema: Schema, study: Study, rows: Iterable[Row]) -> tuple[int, int]:
    """Cells that are filled in, of all that are to be: comments and choices of the best left aside."""
    columns = [name for name in schema.filled_in if name not in ("comment", schema.best)]
    return sum(row[name] is not None for row in rows for name in columns), len(study.units) * len(columns)


def _spell_annotators(root: DataRoot, months: Mapping[tuple[str, str], _Month]) -> None:
    """Spell names of annotators as the table does, so that Anna and anna are one."""
    for schema in {month.schema.name: month.schema for month in months.values()}.values():
        columns = ["study", schema.annotator]
        spelling = {
            (row["study"], row[schema.annotator].casefold()): row[schema.annotator]
            for month in root.months(schema.table)
            for row in root.iterate(schema.table, month, columns)
        }
        new = (m for m in months.values() if m.schema is schema)
        for row in (row for month in new for rows in month.groups.values() for row in rows):
            of = row["study"], row[schema.annotator].casefold()
            row[schema.annotator] = spelling.setdefault(of, row[schema.annotator])


def _rows(root: DataRoot, table: Table, month: str) -> list[Row]:
    return [*root.rows(table, month)] if root.file(table, month).exists() else []


def _write(root: DataRoot, month: str, new: _Month, stay: Iterable[Row]) -> None:
    """Write a month, sorted; the same rows and files give the same bytes."""
    schema, table = new.schema, new.schema.table
    file = root.file(table, month)
    old = read_provenance(file)
    inputs = {**(old.inputs if old else {}), **new.files}
    fingerprint = hashlib.sha256("\n".join(sorted(inputs.values())).encode()).hexdigest()
    columns = [name for name in ("study", schema.annotator, "label", "part", "number") if name in table.schema.names]
    rows = [*stay, *(row for group in new.groups.values() for row in group)]
    with MonthWriter(table, file) as writer:
        for row in sorted(rows, key=lambda row: [row[column] for column in columns]):
            writer.add(row)
        writer.commit(
            Provenance(table.name, month, table.version, 1, __version__, fingerprint, {}, dict(sorted(inputs.items())))
        )


@dataclass(frozen=True, slots=True)
class StudyStatus:
    """How far a study is. filled: annotator → cells filled in, of `cells`."""

    study: str
    kind: str
    items: int
    units: int
    cells: int
    filled: Mapping[str, int]


def read_status(root: DataRoot) -> list[StudyStatus]:
    """The studies of a data root, by name. Raises PermanentFailure where a key is damaged."""
    found = []
    for study in (read_key(root, name) for name in study_names(root)):
        schema = SCHEMAS[study.kind]
        by_annotator: dict[str, list[Row]] = defaultdict(list)
        for month in study.months:
            for row in _rows(root, schema.table, month):
                if row["study"] == study.study:
                    by_annotator[row[schema.annotator]].append(row)
        cells = _progress(schema, study, ())[1]
        filled = {name: _progress(schema, study, rows)[0] for name, rows in sorted(by_annotator.items())}
        found.append(StudyStatus(study.study, study.kind, len(study.items), len(study.units), cells, filled))
    return found
