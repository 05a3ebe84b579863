"""What annotators receive, and the sheets that they send back.

Export: a guide, and for each annotator a page to read and a CSV sheet to fill in. Texts come from
papers and models. Jinja2 escapes them, and a page's policy allows nothing but its own style, not
even a request. Names of tasks and questions are not shown: they may reveal more than annotators
should know.

Import: a sheet is of one study and one annotator. A line that is wrong is reported with line and
column, and costs no other line. A month's file is complete or as it was; an import that was killed
is completed by the same command.
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from pipeline import __version__
from pipeline.engine.locks import month_lock
from pipeline.engine.sampling import shuffled
from pipeline.engine.stage import Workspace
from pipeline.errors import MissingInput, SettingError
from pipeline.evaluation.annotation.study import (
    FORMATS,
    SheetFormat,
    Study,
    StudyItem,
    Unit,
    read_key,
)
from pipeline.evaluation.prose import make_environment, parted, policy_hash, printable
from pipeline.evaluation.verdicts import CLAIM_VERDICTS, GOLD_VERDICTS, split_verdicts
from pipeline.storage.csv_reader import CsvRow, parse_csv, read_content
from pipeline.storage.data_root import DataRoot
from pipeline.storage.provenance import Provenance, read_provenance
from pipeline.storage.writing import MonthWriter, Row, write_whole
from pipeline.tables import CRITERIA
from pipeline.tables.writers import parse_writer
from pipeline.text import one_line, text_digest

_TEMPLATES = Path(__file__).parent / "templates"
# A cell that begins with one of these signs is computed when the file is opened, whatever quotes
# are around it; an apostrophe before it makes it text (OWASP, CSV Injection; CWE-1236). The
# full-width forms too: East Asian spreadsheet programs take them for the same signs. Where the
# program separates cells by semicolons, so does each within a text.
_FORMULA = re.compile(r"(^|;[\s\"]*)(?=[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20])")
_EXPECTED = "a sheet of citeloom annotate export"
_LONGEST_NAME = 100
_Place = tuple[str, str, str, str | None, int | None]
"""What names a row: study, person, label, and of a claim its part and number."""
_ALLOWED: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(CRITERIA, "12345"),
    "preferred": "x",
    "claim": CLAIM_VERDICTS,
    "gold": GOLD_VERDICTS,
}
"""Column, or for verdicts the part of the answer → what may be written."""


def write_files(
    study: Study, items: Iterable[StudyItem], folder: Path, annotators: int
) -> list[Path]:
    """Write the guide, and a page and a sheet for each annotator, into a folder, each file whole or
    absent, and return the paths.

    Everybody tires towards the end, and not of the same items: each annotator has them in an order
    of their own.
    """
    by_id = {item.item_id: item for item in items}
    environment = make_environment(_TEMPLATES)
    environment.filters["parted"] = parted
    style = (_TEMPLATES / "page.css").read_text(encoding="utf-8")
    # Our own file, which the page's policy names by its hash.
    environment.globals.update(style=Markup(style), style_hash=policy_hash(style))  # noqa: S704
    template = environment.get_template("read.html.j2")
    guide = folder / f"{study.kind}-guide.txt"
    write_whole(guide, (_TEMPLATES / guide.name).read_bytes())
    files = [guide]
    for number in range(1, annotators + 1):
        sheet = folder / f"{study.kind}-{number}.csv"
        page = sheet.with_suffix(".html")
        shown = [
            (by_id[item_id], [unit for unit in study.units.values() if unit.item_id == item_id])
            for item_id in shuffled(study.seed, f"annotator {number}", by_id)
        ]
        html = template.render(study=study.study, kind=study.kind, sheet=sheet.name, items=shown)
        write_whole(page, html.encode())
        write_whole(sheet, _sheet(study, shown, f"annotator-{number}"))
        files += [page, sheet]
    return files


def _sheet(
    study: Study, shown: Iterable[tuple[StudyItem, Sequence[Unit]]], annotator: str
) -> bytes:
    """The sheet: a line for each unit, nothing filled in but the annotator's name; UTF-8 with the
    mark that Excel needs to see it, lines as RFC 4180.
    """
    columns = FORMATS[study.kind].columns
    text = io.StringIO()
    writer = csv.DictWriter(text, ("study", "annotator", "unit", "text", *columns))
    writer.writeheader()
    for item, units in shown:
        for unit in units:
            words = one_line(printable(unit.text or item.title))
            writer.writerow(
                {
                    "study": study.study,
                    "annotator": annotator,
                    "unit": unit.unit_id,
                    "text": _FORMULA.sub(r"\1'", words),
                }
            )
    return text.getvalue().encode("utf-8-sig")


@dataclass(frozen=True, slots=True)
class Sheet:
    """A sheet that came back. rows: unit id → row of the table, of the lines that are right, empty
    ones too; faults: what is wrong with the others, by line and column.
    """

    file: Path
    sha256: str
    study: Study
    annotator: str
    rows: Mapping[str, Row]
    faults: Sequence[str]

    @property
    def entries(self) -> int:
        """How many of the rows have anything filled in."""
        columns = FORMATS[self.study.kind].columns
        return sum(any(row[name] is not None for name in columns) for row in self.rows.values())


def import_files(workspace: Workspace, files: Iterable[Path]) -> list[Sheet]:
    """Import sheets that annotators sent back. Waits while another import runs.

    A line replaces the row that the same person gave for the same unit; a line without any entry
    takes it back, and a line that is wrong or missing leaves it. Raises SettingError for a file
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
        if not 0 < len(annotator) <= _LONGEST_NAME or not annotator.isprintable():
            raise SettingError(
                f"line {lines[0].number}, column annotator: {annotator[:100]!r}: give 1 to"
                f" {_LONGEST_NAME} printable characters"
            )
        parse_csv(content, FORMATS[study.kind].columns)
    except (SettingError, MissingInput) as error:
        raise type(error)(f"{file}: {error}") from None
    rows: dict[str, Row] = {}
    faults: list[str] = []
    preferred: dict[str, list[int]] = defaultdict(list)
    for line in lines:
        try:
            unit_id, row = _read_line(line, study, annotator)
            if unit_id in rows:
                raise SettingError(f"column unit: {unit_id} is there twice: leave one line")
        except SettingError as error:
            faults.append(f"line {line.number}, {error}")
            continue
        rows[unit_id] = row
        if row.get("preferred"):
            preferred[study.units[unit_id].item].append(line.number)
    faults += [
        f"lines {', '.join(map(str, numbers))}, column preferred: x more than once in {item}, so"
        " none counts: leave one"
        for item, numbers in preferred.items()
        if len(numbers) > 1
    ]
    return Sheet(file, hashlib.sha256(content).hexdigest(), study, annotator, rows, faults)


def _read_line(line: CsvRow, study: Study, annotator: str) -> tuple[str, Row]:
    """(Unit id, row of the table) of a line. Raises SettingError with the column of what is
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
    return cells["unit"], {name: row[name] for name in form.table.schema.names}


def _read_cell(column: str, unit: Unit, cell: str) -> Any:
    """What a cell says, None for an empty one. Raises SettingError with the column."""
    if not cell or column == "comment":
        return cell or None
    allowed = _ALLOWED[unit.part if column == "verdict" else column]
    # A line may have several claims.
    words = split_verdicts(cell.casefold()) if unit.part == "claim" else [cell.casefold()]
    if not {*words} <= {*allowed}:
        raise SettingError(
            f"column {column}: {cell[:40]!r}: write {' or '.join(allowed)}, or leave it empty"
        )
    if column == "preferred":
        return True
    return ", ".join(words) if column == "verdict" else int(cell)


def _store(root: DataRoot, sheet: Sheet) -> None:
    form = FORMATS[sheet.study.kind]
    for month in sorted({unit.month for unit in sheet.study.units.values()}):
        file = root.file(form.table, month)
        stored = root.rows(form.table, month) if file.exists() else []
        new = {
            _place(row, form): row
            for unit_id, row in sheet.rows.items()
            if sheet.study.units[unit_id].month == month
        }
        rows = {_place(row, form): row for row in stored} | new
        if sheet.study.kind == "ratings":
            _settle_choices(rows, new)
        old = read_provenance(file)
        # Files that come back often have the same name.
        source = {f"{sheet.file.name} {sheet.sha256[:8]}": sheet.sha256}
        inputs = dict(sorted({**(old.inputs if old else {}), **source}.items()))
        with MonthWriter(form.table, file) as writer:
            for place in sorted(rows):
                if any(rows[place][column] is not None for column in form.columns):
                    writer.add(rows[place])
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


def _place(row: Row, form: SheetFormat) -> _Place:
    return row["study"], row[form.person], row["label"], row.get("part"), row.get("number")


def _settle_choices(rows: dict[_Place, Row], new: Collection[_Place]) -> None:
    """Set `preferred` of each person's sections of a task: true for the one that is preferred and
    false for the others, None for all where none or several are.

    new: places of the sheet's rows, whose choice replaces an earlier one.
    """
    tasks: dict[tuple[str, str, str], list[_Place]] = defaultdict(list)
    for place, row in rows.items():
        tasks[row["study"], row["rater"], row["task_id"]].append(place)
    for places in tasks.values():
        preferred = [place for place in places if rows[place]["preferred"]]
        best = [place for place in preferred if place in new] or preferred
        for place in places:
            choice = place == best[0] if len(best) == 1 else None
            rows[place] = {**rows[place], "preferred": choice}
