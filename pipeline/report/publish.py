"""The report's files below the data root: `reports/index.html` and `reports/<month>/`."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from pipeline import tables
from pipeline.engine.digests import json_digest
from pipeline.engine.stage import Job, Workspace
from pipeline.errors import CiteloomError
from pipeline.llm.models import known_cutoffs, known_prices, models_served_as
from pipeline.report import VERSION, pages
from pipeline.report.data import (
    LeftOut,
    ReportData,
    judges_of,
    read_month_report,
    read_overall_report,
)
from pipeline.report.formatting import ANSWERS_PAGE, FAILURES_PAGE
from pipeline.report.rendering import render, templates_digest
from pipeline.report.summary import summary_key
from pipeline.report.written import written_pages
from pipeline.storage.provenance import Provenance
from pipeline.storage.read_cache import once, remember
from pipeline.storage.store import DataPath, file_stat
from pipeline.storage.writing import Row, write_whole

FOLDER = "reports"
_SECTIONS = "page.html.j2"
# The overall page says in its head what it was made from.
_MADE_FROM = re.compile(rb'<meta name="made-from" content="([0-9a-f]{64})">')


def publish(job: Job) -> Iterator[Row]:
    """Write the month's summary and pages, and yield a row of `report` for each page."""
    data = read_month_report(job.workspace, job.month)
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
    list them.
    """
    failures: list[LeftOut] = []
    for page in written_pages(data):
        failures += page.failures
        yield page.file, render("written.html.j2", page)
        if page.traces_file:
            yield page.traces_file, render("traces.html.j2", page)
    report = pages.month_report(data, failures)
    if data.answers.questions:
        yield ANSWERS_PAGE, render(_SECTIONS, pages.answers_page(report))
    yield FAILURES_PAGE, render(_SECTIONS, pages.failures_page(report))
    yield "report.json", pages.month_json(report)
    yield "index.html", render(_SECTIONS, pages.month_page(report))


def _remove_old_pages(folder: DataPath, names: set[str]) -> None:
    """Remove pages that no longer exist, and temporary files of a killed run.

    `report.md` and `run.html` are of earlier versions.
    """
    for pattern in (
        "task-*.html",
        "question-*.html",
        ANSWERS_PAGE,
        "report.md",
        "run.html",
        ".*.tmp",
    ):
        for file in folder.glob(pattern):
            if file.name not in names:
                file.unlink(missing_ok=True)


def write_overall_page(workspace: Workspace) -> None:
    """Write `reports/index.html` from the summaries of the months, unless it was made from just
    these.
    """
    file = workspace.root.path / FOLDER / "index.html"
    with workspace.read_cache():
        digest = _overall_digest(workspace)
        if file.is_file():
            made_from = _MADE_FROM.search(file.read_bytes())
            if made_from and made_from[1].decode() == digest:
                return
        page = pages.overall_page(read_overall_report(workspace), digest)
    write_whole(file, render(_SECTIONS, page))


def _overall_digest(workspace: Workspace) -> str:
    """SHA-256 of what the overall page is made from."""
    root = workspace.root
    summaries = {}
    for month in root.months(tables.DUMP_MEMBERS):
        try:
            summaries[month] = summary_key(root, month)
        except CiteloomError:
            summaries[month] = "unreadable"
    basis = [VERSION, _settings_inputs(workspace), summaries]
    return json_digest(basis)


def inputs(workspace: Workspace, month: str) -> Mapping[str, str]:
    """Digests and values of the inputs beside the rows of tables: templates, settings, ledgers,
    notes of files, people's ratings.
    """
    return {**_settings_inputs(workspace), "summary": summary_key(workspace.root, month)}


def _settings_inputs(workspace: Workspace) -> dict[str, str]:
    settings = workspace.settings
    inputs = {
        "templates": once("templates of reports", templates_digest),
        "judges": ", ".join(judges_of(settings)),
        "prices": "; ".join(
            f"{model} {price.read} {price.written}"
            for model, price in known_prices(settings).items()
        ),
        "cut-offs": "; ".join(
            f"{model} {cutoff}" for model, cutoff in known_cutoffs(settings).items()
        ),
    }
    if settings.candidate_sets:
        inputs["candidate sets"] = json.dumps(settings.candidate_sets)
    if served := models_served_as(settings):
        inputs["served as"] = json.dumps(served)
    return inputs


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
