"""The report's files below the data root: `reports/index.html` and `reports/<month>/`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from pipeline import tables
from pipeline.engine.digests import json_digest
from pipeline.engine.stage import Job, Workspace
from pipeline.llm.models import known_cutoffs, known_prices, models_served_as
from pipeline.report import UPSTREAM
from pipeline.report.formatting import ANSWERS_PAGE
from pipeline.report.frames import LeftOut, ReportData, judges_of, read_report, versions_of
from pipeline.report.pages import month_pages, overall_page
from pipeline.report.rendering import render, templates_digest
from pipeline.report.written import written_pages
from pipeline.storage.data_root import DataRoot
from pipeline.storage.provenance import Provenance, read_provenance
from pipeline.storage.read_cache import once, remember
from pipeline.storage.store import DataPath, file_stat
from pipeline.storage.writing import Row, write_whole

FOLDER = "reports"
_SECTIONS = "page.html.j2"


def publish(job: Job) -> Iterator[Row]:
    """Write the month's pages, and yield a row of `report` for each."""
    data = read_report(job.workspace, [job.month])
    folder = data.root.path / FOLDER / job.month
    rows: list[Row] = []
    for name, content in _files(data):
        write_whole(folder / name, content)
        digest = hashlib.sha256(content).hexdigest()
        path = f"{FOLDER}/{job.month}/{name}"
        rows.append({"path": path, "bytes": len(content), "sha256": digest})
    _remove_old_pages(folder, {Path(str(row["path"])).name for row in rows})
    yield from sorted(rows, key=lambda row: str(row["path"]))


def _files(data: ReportData) -> Iterator[tuple[str, bytes]]:
    """The month's files, name and content: pages of tasks and questions first, since the others
    list what failed there.
    """
    failures: list[LeftOut] = []
    for written in written_pages(data):
        failures += written.failures
        yield written.file, render("written.html.j2", written)
        if written.traces_file:
            yield written.traces_file, render("traces.html.j2", written)
    pages, numbers = month_pages(data, failures)
    for name, page in pages.items():
        yield name, render(_SECTIONS, page)
    yield "report.json", f"{json.dumps(numbers, ensure_ascii=False, indent=1)}\n".encode()


def _remove_old_pages(folder: DataPath, names: set[str]) -> None:
    """Remove pages that no longer exist, and temporary files of a killed run.

    `report.md` and `run.html` are of earlier versions.
    """
    old = ("task-*.html", "question-*.html", ANSWERS_PAGE, "report.md", "run.html", ".*.tmp")
    for pattern in old:
        for file in folder.glob(pattern):
            if file.name not in names:
                file.unlink(missing_ok=True)


def write_overall_page(workspace: Workspace) -> None:
    """Write `reports/index.html` over all months, unless it is there as it would be written."""
    file = workspace.root.path / FOLDER / "index.html"
    months = workspace.root.months(tables.DUMP_MEMBERS)
    content = render(_SECTIONS, overall_page(read_report(workspace, months, skip_damaged=True)))
    if not file.is_file() or file.read_bytes() != content:
        write_whole(file, content)


def inputs(workspace: Workspace, month: str) -> Mapping[str, str]:
    """Digests and values of the inputs beside the rows of tables: templates, settings, ledgers,
    notes of files, people's ratings.
    """
    settings = workspace.settings
    prices, cutoffs = known_prices(settings), known_cutoffs(settings)
    values = {
        "templates": once("templates of reports", templates_digest),
        "judges": ", ".join(judges_of(settings)),
        "prices": "; ".join(f"{name} {p.read} {p.written}" for name, p in prices.items()),
        "cut-offs": "; ".join(f"{name} {cutoff}" for name, cutoff in cutoffs.items()),
        "files": _files_digest(workspace.root, month),
    }
    if settings.candidate_sets:
        values["candidate sets"] = json.dumps(settings.candidate_sets)
    if served := models_served_as(settings):
        values["served as"] = json.dumps(served)
    return values


def _files_digest(root: DataRoot, month: str) -> str:
    """SHA-256 of what the files of a month record. Raises PermanentFailure where one cannot be
    read.
    """
    read = UPSTREAM
    files = [
        root.file(table, month) for table in (*read, tables.HUMAN_RATINGS, tables.HUMAN_GRADES)
    ]

    def digest() -> str:
        ledgers = [root.ledger_file(table.name, month) for table in read]
        records = [read_provenance(file) for file in (*files, *ledgers)]
        return json_digest(
            [item and [item.rows_sha256, dict(item.left_out), dict(item.notes)] for item in records]
        )

    # A stage writes its ledger before its table: where no table was rewritten, no ledger was.
    versions = versions_of(files)
    return remember(f"files of the report of {month} in {root.path}", versions, digest)


def outputs_exist(workspace: Workspace, month: str, written: Provenance) -> bool:
    """Whether every page of the month exists as it was written.

    Pages are written before the month's table: one of the same size that is no newer is the same.
    A newer one, as in a copied data root, is read and hashed.
    """
    root = workspace.root
    file = root.file(tables.REPORT, month)
    table_written = file_stat(file).st_mtime

    def read_pages() -> str:
        return json.dumps(root.rows(tables.REPORT, month))

    with workspace.read_cache():
        rows = json.loads(remember(f"pages of {file}", written.rows_sha256, read_pages))
        return all(_is_unchanged(root.path / row["path"], row, table_written) for row in rows)


def _is_unchanged(file: DataPath, row: Row, table_written: float) -> bool:
    try:
        stat = file.stat()
        if stat.st_size != row["bytes"]:
            return False
        if stat.st_mtime <= table_written:
            return True
        return hashlib.sha256(file.read_bytes()).hexdigest() == str(row["sha256"])
    except FileNotFoundError:
        return False
