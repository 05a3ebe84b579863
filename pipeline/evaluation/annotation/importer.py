"""Import of the sheets that annotators send back: lines are checked, labels become systems, rows
are stored.

A sheet is of one study and one annotator. Faults are reported with file, line and column: a line
that is wrong costs no other line, and a file that is no sheet costs no other file. A month's file
is complete or as it was; an import that was killed is completed by the same command.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from pipeline import __version__
from pipeline.engine.locks import month_lock
from pipeline.engine.stage import Workspace
from pipeline.errors import MissingInput, SettingError
from pipeline.evaluation.annotation.study import RatingRow, SheetRow, Study, read_key, study_names
from pipeline.storage.csv_reader import MOST_BYTES, CsvRow, parse_csv
from pipeline.storage.data_root import DataRoot
from pipeline.storage.provenance import Provenance, read_provenance
from pipeline.storage.writing import MonthWriter, Row
from pipeline.tables.writers import parse_writer
from pipeline.text import one_line

_LONGEST_NAME = 100


@dataclass(frozen=True, slots=True)
class Sheet:
    """A sheet that came back. rows: unit id → what was filled in, of the lines that are right;
    faults: what is wrong with the others, by line and column.
    """

    study: Study
    annotator: str
    rows: Mapping[str, SheetRow]
    faults: Sequence[str]
    sha256: str


def read_sheet(root: DataRoot, file: Path, annotator: str | None = None) -> Sheet:
    """Read a sheet that an annotator sent back. annotator: in place of the name in the file.

    Raises SettingError for a file that is no sheet, or is not of one study and one annotator;
    MissingInput for a study that is not there.
    """
    content, lines = _read_lines(file)
    study = read_key(root, _single_value("study", lines))
    name = one_line(_single_value("annotator", lines) if annotator is None else annotator)
    if not name:
        raise SettingError("--annotator is empty: give the annotator's name")
    if len(name) > _LONGEST_NAME or not name.isprintable():
        raise SettingError(
            f"annotator is {name[:100]!r}: give {_LONGEST_NAME} printable characters at most"
        )
    missing = [column for column in study.row_class.model_fields if column not in lines[0].cells]
    if missing:
        raise SettingError(f"it has no column {', '.join(missing)}: keep the columns of the sheet")
    rows, faults = _check_lines(lines, study)
    return Sheet(study, name, rows, faults, hashlib.sha256(content).hexdigest())


def _read_lines(file: Path) -> tuple[bytes, list[CsvRow]]:
    try:
        if file.stat().st_size > MOST_BYTES:
            raise SettingError(
                f"it has over {MOST_BYTES:,} bytes: give a sheet of citeloom annotate export"
            )
        content = file.read_bytes()
    except OSError as error:
        raise SettingError(f"it cannot be read ({error.strerror})") from None
    lines = parse_csv(content, ("study", "annotator", "unit"))
    if not lines:
        raise SettingError(
            "it has no line below its columns: give a sheet of citeloom annotate export"
        )
    return content, lines


def _single_value(column: str, lines: Iterable[CsvRow]) -> str:
    """The one value of a column; lines may leave it empty, to spare writing a name forty times."""
    values: dict[str, tuple[str, int]] = {}
    for line in lines:
        value = one_line(line.cells[column])
        values.setdefault(value.casefold(), (value, line.number))
    values.pop("", None)
    if len(values) > 1:
        named = " and ".join(
            f"{value[:100]!r} on line {number}" for value, number in [*values.values()][:2]
        )
        raise SettingError(f"column {column} has {named}: a file is of one {column}")
    if not values:
        other_way = " or give --annotator" if column == "annotator" else ""
        raise SettingError(f"column {column} is empty: fill it in{other_way}")
    return next(iter(values.values()))[0]


def _check_lines(lines: Sequence[CsvRow], study: Study) -> tuple[dict[str, SheetRow], list[str]]:
    """Unit id → row of the lines that are right, and what is wrong with the others."""
    units = {unit.casefold(): unit for unit in study.units}
    rows: dict[str, SheetRow] = {}
    numbers: dict[str, int] = {}
    faults: list[str] = []
    for line in lines:
        name = line.cells["unit"].strip()
        unit = units.get(name.casefold())
        if unit is None:
            fault = (
                f"column unit: {name[:40]!r}: keep the units of the sheet, such as"
                f" {min(study.units)}"
            )
        elif unit in numbers:
            fault = f"column unit: {unit} is on line {numbers[unit]} too: leave one line"
        elif line.cells[""].strip():
            fault = "more cells than columns: put quotes around the comment"
        else:
            numbers[unit] = line.number
            row_class = study.units[unit].row_class
            try:
                rows[unit] = row_class.model_validate(
                    {name: line.cells[name] for name in row_class.model_fields}
                )
                continue
            except ValidationError as error:
                fault = "; ".join(
                    _cell_fault(line, row_class, str(each["loc"][0])) for each in error.errors()
                )
        faults.append(f"line {line.number}, {fault}")
    return rows, [*faults, *_settle_choices(rows, numbers, study)]


def _cell_fault(line: CsvRow, row_class: type[SheetRow], column: str) -> str:
    allowed = row_class.model_fields[column].description
    return f"column {column}: {line.cells[column][:40]!r}: write {allowed}, or leave it empty"


def _settle_choices(
    rows: dict[str, SheetRow], numbers: Mapping[str, int], study: Study
) -> Iterator[str]:
    """Mark the others of an item as not the best where one is marked as the best; where several
    are, the choice is unknown. Yields what is wrong.
    """
    best: dict[str, list[str]] = defaultdict(list)
    for unit, row in rows.items():
        if isinstance(row, RatingRow) and row.preferred:
            best[study.units[unit].item].append(unit)
    for item, marked in best.items():
        if len(marked) > 1:
            places = " and ".join(f"line {numbers[unit]}" for unit in marked)
            yield f"{places}, column preferred: marked more than once in {item}: leave one"
    for unit, row in rows.items():
        if isinstance(row, RatingRow):
            choice = bool(row.preferred) if len(best[study.units[unit].item]) == 1 else None
            rows[unit] = row.model_copy(update={"preferred": choice})


@dataclass(frozen=True, slots=True)
class ImportedSheet:
    """The outcome of the import of one file.

    rows: how many were stored; replaced: how many that the same person had given before are gone;
    filled: cells that are filled in, of `cells`; faults: what is wrong and not imported, by line
    and column.
    """

    file: str
    study: str | None = None
    annotator: str | None = None
    rows: int = 0
    replaced: int = 0
    filled: int = 0
    cells: int = 0
    faults: Sequence[str] = ()


def import_files(
    workspace: Workspace, files: Iterable[Path], *, annotator: str | None = None
) -> list[ImportedSheet]:
    """Import sheets that annotators sent back. annotator: as for `read_sheet`.

    A person's rows of a group (a task, an answer) replace earlier rows of the same person and
    group, except for lines that are wrong or missing now; of two files, the later one counts. Lines
    without any entry are left out. Waits while another import runs.
    """
    with month_lock(workspace, "annotations", "all"):
        return [_import(workspace.root, file, annotator) for file in files]


def _import(root: DataRoot, file: Path, override: str | None) -> ImportedSheet:
    try:
        sheet = read_sheet(root, file, override)
    except (SettingError, MissingInput) as error:
        return ImportedSheet(str(file), faults=[str(error)])
    study = sheet.study
    mine: dict[str, list[Row]] = defaultdict(list)
    others: dict[str, list[Row]] = defaultdict(list)
    for month in study.months:
        for row in _stored_rows(root, study, month):
            same_name = row[study.row_class.annotator].casefold() == sheet.annotator.casefold()
            if row["study"] == study.study and same_name:
                mine[month].append(row)
            else:
                others[month].append(row)
    names = [row[study.row_class.annotator] for rows in mine.values() for row in rows]
    # Anna and anna are one: the first spelling stays.
    annotator = names[0] if names else sheet.annotator
    new = _table_rows(sheet, annotator)
    replaced = 0
    for month, rows in new.items():
        unchanged = _rows_to_keep(mine[month], rows, sheet)
        replaced += len(mine[month]) - len(unchanged)
        # Files that come back often have the same name.
        source = {f"{file.name} {sheet.sha256[:8]}": sheet.sha256}
        _write(root, study, month, [*others[month], *unchanged, *rows], source)
    imported = [row for rows in new.values() for row in rows]
    nothing = [] if imported or sheet.faults else ["no line of it has an entry"]
    return ImportedSheet(
        str(file),
        study.study,
        annotator,
        len(imported),
        replaced,
        *_progress(study, imported),
        faults=[*sheet.faults, *nothing],
    )


def _stored_rows(root: DataRoot, study: Study, month: str) -> list[Row]:
    table = study.row_class.table
    return [*root.rows(table, month)] if root.file(table, month).exists() else []


def _table_rows(sheet: Sheet, annotator: str) -> dict[str, list[Row]]:
    """Month → rows of the table, of the lines with an entry."""
    row_class = sheet.study.row_class
    rows: dict[str, list[Row]] = defaultdict(list)
    for unit_id, row in sheet.rows.items():
        values = row.model_dump()
        if all(value is None for value in values.values()):
            continue
        unit = sheet.study.units[unit_id]
        cells = {
            **unit.model_dump(),
            **parse_writer(unit.system).columns,
            **values,
            "study": sheet.study.study,
            row_class.annotator: annotator,
            row_class.item_id: unit.item_id,
        }
        rows[unit.month].append({name: cells[name] for name in row_class.table.schema.names})
    return rows


def _rows_to_keep(earlier: Iterable[Row], new: Iterable[Row], sheet: Sheet) -> list[Row]:
    """The annotator's earlier rows of other groups, and of lines that are wrong or missing now."""
    row_class = sheet.study.row_class
    groups = {row[row_class.group] for row in new}
    decided = {row[row_class.group] for row in new if row.get("preferred")}
    return [
        {**row, "preferred": False} if row[row_class.group] in decided else row
        for row in earlier
        if row[row_class.group] not in groups or row_class.unit_id(row) not in sheet.rows
    ]


def _write(
    root: DataRoot, study: Study, month: str, rows: Iterable[Row], inputs: Mapping[str, str]
) -> None:
    """Write a month, sorted; the same rows and files give the same bytes."""
    row_class, table = study.row_class, study.row_class.table
    file = root.file(table, month)
    old = read_provenance(file)
    inputs = {**(old.inputs if old else {}), **inputs}
    fingerprint = hashlib.sha256("\n".join(sorted(inputs.values())).encode()).hexdigest()
    order = ("study", row_class.annotator, *row_class.unit_columns)
    with MonthWriter(table, file) as writer:
        for row in sorted(rows, key=lambda row: [row[column] for column in order]):
            writer.add(row)
        writer.commit(
            Provenance(
                table=table.name,
                month=month,
                schema_version=table.version,
                stage_version=1,
                code_version=__version__,
                fingerprint=fingerprint,
                settings={},
                inputs=dict(sorted(inputs.items())),
            )
        )


def _progress(study: Study, rows: Iterable[Row]) -> tuple[int, int]:
    """(cells filled in, cells to fill in), without comments and choices of the best."""
    marks = study.row_class.marks
    filled = sum(row[name] is not None for row in rows for name in marks)
    return filled, len(study.units) * len(marks)


@dataclass(frozen=True, slots=True)
class StudyStatus:
    """How much of a study is filled in. filled: annotator → cells filled in, of `cells`."""

    study: str
    kind: str
    items: int
    units: int
    cells: int
    filled: Mapping[str, int]


def read_status(root: DataRoot) -> list[StudyStatus]:
    """The studies of a data root, by name. Raises PermanentFailure where a key is damaged."""
    studies = []
    for name in study_names(root):
        study = read_key(root, name)
        by_annotator: dict[str, list[Row]] = defaultdict(list)
        for month in study.months:
            for row in _stored_rows(root, study, month):
                if row["study"] == study.study:
                    by_annotator[row[study.row_class.annotator]].append(row)
        filled = {
            annotator: _progress(study, rows)[0] for annotator, rows in sorted(by_annotator.items())
        }
        _, cells = _progress(study, ())
        studies.append(
            StudyStatus(
                study=study.study,
                kind=study.kind,
                items=len({unit.item for unit in study.units.values()}),
                units=len(study.units),
                cells=cells,
                filled=filled,
            )
        )
    return studies
