"""Annotation studies: what a line of a sheet stands for, the key to it, and the sheets that come
back.

The key is in the data root (`annotations/<name>/key.json`), not beside the sheets: the folder of
sheets is sent to annotators, who must not see the key.

A sheet is of one study and one annotator. A line that is wrong is reported with line and column,
and costs no other line. A month's file is complete or as it was; an import that was killed is
completed by the same command.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pipeline import __version__, tables
from pipeline.engine.locks import month_lock
from pipeline.engine.stage import Workspace
from pipeline.errors import MissingInput, PermanentFailure, SettingError
from pipeline.evaluation.verdicts import CLAIM_VERDICTS, GOLD_VERDICTS
from pipeline.storage.csv_reader import CsvRow, parse_csv, read_content
from pipeline.storage.data_root import DataRoot
from pipeline.storage.provenance import Provenance, read_provenance
from pipeline.storage.store import DataPath
from pipeline.storage.writing import MonthWriter, Row, write_whole
from pipeline.system_names import present_name
from pipeline.tables import CRITERIA, Table
from pipeline.tables.writers import parse_writer
from pipeline.text import text_digest

FOLDER = "annotations"
STUDY_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,49}")
_EXPECTED = "a sheet of citeloom annotate export"
# Column, or for verdicts the part of the answer → what may be written.
_ALLOWED: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(CRITERIA, "12345"),
    "preferred": "x",
    "claim": CLAIM_VERDICTS,
    "gold": GOLD_VERDICTS,
}

Kind = Literal["ratings", "grades"]
Part = Literal["claim", "gold"]
# Part of an answer → the column of `answer_grades` that has the claims.
CLAIMS: Mapping[Part, str] = {"claim": "claims", "gold": "gold"}


class SheetFormat(NamedTuple):
    """What the sheets of a kind hold, and where it goes.

    texts: the table whose writers are annotated. person, item: columns of `table` for the
    annotator, and for the task or question. columns: to fill in. item_letter: begins the names of
    items.
    """

    texts: Table
    table: Table
    person: str
    item: str
    columns: tuple[str, ...]
    item_letter: str


FORMATS: Mapping[Kind, SheetFormat] = {
    "ratings": SheetFormat(
        tables.SUMMARIES,
        tables.HUMAN_RATINGS,
        "rater",
        "task_id",
        (*CRITERIA, "preferred", "comment"),
        "T",
    ),
    "grades": SheetFormat(
        tables.ANSWER_GRADES,
        tables.HUMAN_GRADES,
        "grader",
        "question_id",
        ("verdict", "comment"),
        "Q",
    ),
}


class Unit(BaseModel):
    """One line of a sheet and what is behind it.

    item: name of the task or question that annotators see (T01); label: of the text (T01-B). number
    and text: of a claim; None where the whole text is annotated. text_sha256: of the text as
    annotators see it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    item: str
    label: str
    month: str
    item_id: str
    system: str
    text_sha256: str
    part: Literal["section", "claim", "gold"]
    number: int | None = None
    text: str | None = None

    @property
    def unit_id(self) -> str:
        """The name of its line: the label, and for a claim its part and number."""
        return self.label if self.number is None else f"{self.label}-{self.part}-{self.number}"


class Study(BaseModel):
    """The key of a study: what annotators must not know. units: unit id → what is behind it.

    Of the first format, systems may have the names of `EARLIER_NAMES`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["citeloom-annotation-1", "citeloom-annotation-2"] = "citeloom-annotation-2"
    kind: Kind
    study: str
    seed: int
    units: Annotated[Mapping[str, Unit], Field(min_length=1)]


def key_file(root: DataRoot, name: str) -> DataPath:
    """Where the key of a study lies."""
    return root.path / FOLDER / name / "key.json"


def write_key(root: DataRoot, study: Study) -> None:
    """Write the key of a study.

    Raises SettingError where a study of this name has another key: sheets that are out would be
    read with the wrong letters.
    """
    file = key_file(root, study.study)
    if file.exists() and read_key(root, study.study) != study:
        raise SettingError(
            f"there is a study {study.study} already, with other items, systems, seed or texts"
            f" ({file}): give another --name"
        )
    write_whole(file, f"{study.model_dump_json(indent=1)}\n".encode())


def read_key(root: DataRoot, name: str) -> Study:
    """Read a study. Raises MissingInput where there is none, PermanentFailure if it is damaged."""
    # The name comes from a file that somebody sent: it must not lead out of the folder.
    file = key_file(root, name) if STUDY_NAME.fullmatch(name) else None
    if file is None or not file.is_file():
        raise MissingInput(
            f"there is no study {name[:100]!r} in {root.path / FOLDER}: run citeloom annotate"
            " export, or set CITELOOM_DATA to the study's data root"
        )
    try:
        study = Study.model_validate_json(file.read_bytes())
    except ValidationError as error:
        raise PermanentFailure(
            f"{file} is damaged ({error.errors()[0]['msg']}): restore it from a copy"
        ) from None
    if study.format == "citeloom-annotation-2":
        return study
    units = {
        unit_id: unit.model_copy(update={"system": present_name(unit.system)})
        for unit_id, unit in study.units.items()
    }
    return Study(kind=study.kind, study=study.study, seed=study.seed, units=units)


class Sheet(NamedTuple):
    """A sheet that came back. rows: (month, row of the table) of each line that is right and holds
    anything; faults: what is wrong with the others, by line and column.
    """

    file: Path
    sha256: str
    study: Study
    annotator: str
    rows: Sequence[tuple[str, Row]]
    faults: Sequence[str]


def import_files(workspace: Workspace, files: Iterable[Path]) -> list[Sheet]:
    """Import sheets that annotators sent back. Waits while another import runs.

    A sheet replaces what the same person gave in this study before. Raises SettingError for a file
    that is no sheet, MissingInput for an unknown study: then nothing is imported.
    """
    sheets = [read_sheet(workspace.root, file) for file in files]
    with month_lock(workspace, "annotations", "all"):
        for sheet in sheets:
            _store(workspace.root, sheet)
    return sheets


def read_sheet(root: DataRoot, file: Path) -> Sheet:
    """Read a sheet that an annotator sent back. Raises as `import_files` does."""
    content = read_content(file, _EXPECTED)
    try:
        lines = parse_csv(content, ("study", "annotator", "unit"))
        if not lines:
            raise SettingError(f"it has no line below its columns: give {_EXPECTED}")
        study = read_key(root, lines[0].cells["study"].strip())
        annotator = lines[0].cells["annotator"].strip()
        if not 0 < len(annotator) <= 100 or not annotator.isprintable():
            raise SettingError(
                f"line {lines[0].number}, column annotator: {annotator[:100]!r}: give 1 to 100"
                " printable characters"
            )
        form = FORMATS[study.kind]
        parse_csv(content, form.columns)
    except (SettingError, MissingInput) as error:
        raise type(error)(f"{file}: {error}") from None
    rows: dict[str, Row] = {}
    faults: list[str] = []
    preferred: dict[str, int] = {}
    for line in lines:
        try:
            unit, row = _read_line(line, study, annotator)
            if unit.unit_id in rows:
                raise SettingError(f"column unit: {unit.unit_id} is there twice: leave one line")
            if row.get("preferred") and preferred.setdefault(unit.item, line.number) != line.number:
                raise SettingError(
                    f"column preferred: {unit.item} has an x on line {preferred[unit.item]} too:"
                    " leave one"
                )
            rows[unit.unit_id] = row
        except SettingError as error:
            faults.append(f"line {line.number}, {error}")
    filled = [
        (study.units[unit_id].month, row)
        for unit_id, row in rows.items()
        if any(row[column] is not None for column in form.columns)
    ]
    return Sheet(file, hashlib.sha256(content).hexdigest(), study, annotator, filled, faults)


def _read_line(line: CsvRow, study: Study, annotator: str) -> tuple[Unit, Row]:
    """The unit of a line and the row of the table. Raises SettingError with the column of what is
    wrong.
    """
    cells = {column: cell.strip() for column, cell in line.cells.items()}
    for column, value in (("study", study.study), ("annotator", annotator)):
        if cells[column] != value:
            raise SettingError(
                f"column {column}: {cells[column][:40]!r}: a file is of one {column}, here {value}"
            )
    unit = study.units.get(cells["unit"])
    if unit is None:
        raise SettingError(
            f"column unit: {cells['unit'][:40]!r}: keep the units of the sheet, such as"
            f" {min(study.units)}"
        )
    if cells[""]:
        raise SettingError("more cells than columns: put quotes around the comment")
    form = FORMATS[study.kind]
    row = {
        **unit.model_dump(),
        **parse_writer(unit.system).columns,
        **{column: _read_cell(column, unit, cells[column]) for column in form.columns},
        "study": study.study,
        form.person: annotator,
        form.item: unit.item_id,
    }
    return unit, {name: row[name] for name in form.table.schema.names}


def _read_cell(column: str, unit: Unit, cell: str) -> Any:
    """What a cell says, None for an empty one. Raises SettingError with the column."""
    if not cell or column == "comment":
        return cell or None
    allowed = _ALLOWED[unit.part if column == "verdict" else column]
    word = cell.casefold()
    if word not in tuple(allowed):
        raise SettingError(
            f"column {column}: {cell[:40]!r}: write {' or '.join(allowed)}, or leave it empty"
        )
    if column in CRITERIA:
        return int(word)
    return word if column == "verdict" else True


def _store(root: DataRoot, sheet: Sheet) -> None:
    study, form = sheet.study, FORMATS[sheet.study.kind]
    order = ("study", form.person, "label", "part", "number")
    for month in sorted({unit.month for unit in study.units.values()}):
        file = root.file(form.table, month)
        rows: list[Row] = [
            row
            for row in (root.rows(form.table, month) if file.exists() else ())
            if (row["study"], row[form.person]) != (study.study, sheet.annotator)
        ]
        rows += [row for of_month, row in sheet.rows if of_month == month]
        old = read_provenance(file)
        inputs = {**old.inputs} if old else {}
        # Files that come back often have the same name.
        inputs[f"{sheet.file.name} {sheet.sha256[:8]}"] = sheet.sha256
        with MonthWriter(form.table, file) as writer:
            for row in sorted(rows, key=lambda row: [row.get(name) for name in order]):
                writer.add(row)
            writer.commit(
                Provenance(
                    table=form.table.name,
                    month=month,
                    schema_version=form.table.version,
                    stage_version=1,
                    code_version=__version__,
                    fingerprint=text_digest("\n".join(sorted(inputs.values()))),
                    settings={},
                    inputs=inputs,
                )
            )
