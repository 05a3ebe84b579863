"""The report's files below the data root: `reports/index.html` and `reports/<month>/`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from filelock import FileLock

from pipeline import tables
from pipeline.engine.stage import Job, Workspace
from pipeline.evaluation.judge_figures import figures_digest
from pipeline.llm.models import known_prices
from pipeline.report import pages
from pipeline.report.data import (
    FUNNEL_STAGES,
    MODEL_STAGES,
    ReportData,
    judges_of,
    read_month_report,
    read_overall_report,
    retrieval_notes,
)
from pipeline.report.formatting import ANSWERS_PAGE, FAILURES_PAGE, RUN_PAGE
from pipeline.report.question_page import question_pages
from pipeline.report.rendering import render, templates_digest
from pipeline.report.task_page import task_pages
from pipeline.storage.data_root import DataRoot
from pipeline.storage.provenance import Provenance, read_provenance
from pipeline.storage.store import DataPath
from pipeline.storage.writing import Row, write_whole

FOLDER = "reports"
_SECTIONS = "page.html.j2"


def publish(job: Job) -> Iterator[Row]:
    """Write the overall page, then the month's files, and yield a row of `report` for each of the
    month's files.

    The overall page comes first: the month's table says that the month is done, so after a kill
    before it everything is written again. It has no row, because the next month changes it; nor has
    the page of times, because the next run changes it.
    """
    write_overall_page(job.workspace)
    data = read_month_report(job.workspace, job.month)
    folder = data.root.path / FOLDER / job.month
    write_whole(folder / RUN_PAGE, render(_SECTIONS, pages.run_page(data)))
    rows: list[Row] = []
    for name, content in _files(data):
        write_whole(folder / name, content)
        digest = hashlib.sha256(content).hexdigest()
        path = f"{FOLDER}/{job.month}/{name}"
        rows.append({"path": path, "bytes": len(content), "sha256": digest})
    _remove_old_pages(folder, {Path(str(row["path"])).name for row in rows})
    yield from sorted(rows, key=lambda row: str(row["path"]))


def write_overall_page(workspace: Workspace) -> None:
    """Write `reports/index.html` from the tables that exist."""
    # Two months may be published at once: the last to hold the lock has read what the other wrote.
    with FileLock(workspace.cache("locks") / "overall-index.lock", timeout=600):
        page = pages.overall_page(read_overall_report(workspace))
        write_whole(workspace.root.path / FOLDER / "index.html", render(_SECTIONS, page))


def _files(data: ReportData) -> Iterator[tuple[str, bytes]]:
    """The month's files, name and content: pages of tasks and questions first, since the others
    list them.
    """
    texts = pages.TextPages()
    for task in task_pages(data):
        texts.add_task(task)
        yield task.file, render("task.html.j2", task)
        if task.has_steps:
            yield task.written_file, render("written.html.j2", task)
    for question in question_pages(data):
        texts.add_question(question)
        yield question.file, render("question.html.j2", question)
    report = pages.month_report(data, texts)
    if data.answers.questions:
        yield ANSWERS_PAGE, render(_SECTIONS, pages.answers_page(report))
    yield FAILURES_PAGE, render(_SECTIONS, pages.failures_page(report))
    yield "report.json", pages.month_json(report)
    yield "index.html", render(_SECTIONS, pages.month_page(report))


def _remove_old_pages(folder: DataPath, names: set[str]) -> None:
    """Remove pages of tasks and questions that no longer exist, and temporary files of a killed
    run.

    `report.md` is of earlier versions.
    """
    for pattern in ("task-*.html", "question-*.html", ANSWERS_PAGE, "report.md", ".*.tmp"):
        for file in folder.glob(pattern):
            if file.name not in names:
                file.unlink(missing_ok=True)


def inputs(workspace: Workspace, month: str) -> Mapping[str, str]:
    """Digests and values of the inputs beside tables: templates, settings, ledgers, notes of files,
    people's ratings.

    Times are not among them: a run that changes no row does not make the report out of date.
    """
    root, settings = workspace.root, workspace.settings
    prices = known_prices(settings)
    return {
        "templates": templates_digest(),
        "judges": ", ".join(judges_of(settings)),
        "prices": "; ".join(
            f"{model} {price.read} {price.written}" for model, price in prices.items()
        ),
        "cut-off": settings.llm_cutoff,
        "judge figures": figures_digest(),
        **_provenance_inputs(root, month),
    }


def _provenance_inputs(root: DataRoot, month: str) -> dict[str, str]:
    """Digests of ledgers and of people's ratings, and notes of files: why something was not run."""
    files = {
        f"ledger {stage}": root.ledger_file(stage, month)
        for stage in (*FUNNEL_STAGES, *MODEL_STAGES)
    }
    files["human ratings"] = root.file(tables.HUMAN_RATINGS, month)
    files["human grades"] = root.file(tables.HUMAN_GRADES, month)
    digests = {}
    for name, file in files.items():
        provenance = read_provenance(file)
        if provenance is not None:
            digests[name] = provenance.rows_sha256
    for stage in MODEL_STAGES:
        provenance = read_provenance(root.file(tables.TABLES[stage], month))
        if provenance is not None:
            digests[f"off {stage}"] = str(provenance.notes.get("off", ""))
    retrieval = json.dumps(retrieval_notes(root, month), sort_keys=True)
    digest = hashlib.sha256(retrieval.encode()).hexdigest()
    return digests | {f"notes {tables.RETRIEVAL_SCORES.name}": digest}


def outputs_exist(workspace: Workspace, month: str, written: Provenance) -> bool:
    """Whether every file of the month exists, byte for byte, and the overall page at all.

    On an object store by name and length: reading hundreds of pages for a status would take as many
    requests, and an upload is never seen in part.
    """
    root = workspace.root
    if not (root.path / FOLDER / "index.html").is_file():
        return False
    with workspace.read_cache():
        return all(
            _is_whole(root.path / row["path"], row) for row in root.rows(tables.REPORT, month)
        )


def _is_whole(file: DataPath, row: Row) -> bool:
    if not file.is_file():
        return False
    if isinstance(file, Path):
        return hashlib.sha256(file.read_bytes()).hexdigest() == str(row["sha256"])
    return file.stat().st_size == int(row["bytes"])
