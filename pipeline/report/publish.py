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
from pipeline.report.answers_data import AnswersData, read_month_answers
from pipeline.report.corpus import (
    FUNNEL_STAGES,
    MODEL_STAGES,
    count_left_out,
    failure_sections,
    funnel,
)
from pipeline.report.formatting import ANSWERS_PAGE, FAILURES_PAGE, RUN_PAGE
from pipeline.report.month_json import month_json
from pipeline.report.question_page import QuestionTally, question_pages
from pipeline.report.related_work_data import RelatedWorkData, read_related_work
from pipeline.report.rendering import render, templates_digest
from pipeline.report.retrieval import read_retrieval, retrieval_notes, retrieval_section
from pipeline.report.task_page import TaskTally, task_pages
from pipeline.settings import Settings
from pipeline.settings.validators import OVERLAP_JUDGE
from pipeline.storage.data_root import DataRoot
from pipeline.storage.provenance import Provenance, read_provenance
from pipeline.storage.store import DataPath, listing_cache
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
    root, month = job.workspace.root, job.month
    write_overall_page(job.workspace)
    folder = root.path / FOLDER / month
    related, answers = (
        read_month_related_work(job.workspace, month),
        _read_answers(job.workspace, month),
    )
    write_whole(folder / RUN_PAGE, render(_SECTIONS, pages.run_page(root, month, related, answers)))
    rows = []
    for name, content in _files(root, month, related, answers):
        write_whole(folder / name, content)
        digest = hashlib.sha256(content).hexdigest()
        rows.append({"path": f"{FOLDER}/{month}/{name}", "bytes": len(content), "sha256": digest})
    _remove_old_pages(folder, {Path(str(row["path"])).name for row in rows})
    yield from sorted(rows, key=lambda row: str(row["path"]))


def read_month_related_work(workspace: Workspace, month: str) -> RelatedWorkData:
    """A month's numbers of related work."""
    settings = workspace.settings
    return read_related_work(workspace.root, month, _judges(settings), known_prices(settings))


def _read_answers(workspace: Workspace, month: str) -> AnswersData:
    settings = workspace.settings
    return read_month_answers(
        workspace.root, month, _judges(settings), known_prices(settings), settings.llm_cutoff
    )


def _judges(settings: Settings) -> list[str]:
    """The judges in their order. Overlap judges citations alone, so the default model follows
    it.
    """
    return list(
        settings.judges
        if set(settings.judges) - {OVERLAP_JUDGE}
        else (*settings.judges, settings.llm_model)
    )


def write_overall_page(workspace: Workspace) -> None:
    """Write `reports/index.html` from the tables that exist."""
    settings = workspace.settings
    # Two months may be published at once: the last to hold the lock has read what the other wrote.
    with FileLock(workspace.cache("locks") / "overall-index.lock", timeout=600):
        page = pages.overall_page(
            workspace.root, _judges(settings), known_prices(settings), settings.llm_cutoff
        )
        write_whole(workspace.root.path / FOLDER / "index.html", render(_SECTIONS, page))


def _files(
    root: DataRoot, month: str, related: RelatedWorkData, answers: AnswersData
) -> Iterator[tuple[str, bytes]]:
    """The month's files, name and content: pages of tasks and questions first, which fill the
    tallies.
    """
    tasks, questions = TaskTally(), QuestionTally()
    for task in task_pages(root, month, related, tasks):
        yield task["file"], render("task.html.j2", task)
        if task["has_steps"]:
            yield task["written_file"], render("written.html.j2", task)
    for question in question_pages(root, month, answers, questions):
        yield question["file"], render("question.html.j2", question)
    related.retention = tasks.retention
    recovered = [*tasks.recovered, *questions.recovered]
    failures, failed = failure_sections(root, month, tasks.pages, questions.pages, recovered)
    report = pages.MonthReport(
        month=month,
        steps=funnel(root, [month], count_left_out(root, month)),
        related=related,
        answers=answers,
        retrieval=retrieval_section(read_retrieval(root, month)),
        related_sections=pages.related_work_sections(related, tasks.tasks),
        answer_sections=pages.answer_sections(root, month, answers),
        failures=failures,
        failed=failed,
        sample=pages.has_sample_papers(root, month),
    )
    if answers.questions:
        yield ANSWERS_PAGE, render(_SECTIONS, pages.answers_page(report))
    yield FAILURES_PAGE, render(_SECTIONS, pages.failures_page(report))
    yield "report.json", month_json(report)
    yield "index.html", render(_SECTIONS, pages.month_page(root, report))


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
    """What the pages show besides the rows of tables: templates, settings, ledgers, notes of files,
    people's ratings.

    Times are not among them: a run that changes no row does not make the report out of date.
    """
    root, settings = workspace.root, workspace.settings
    prices = known_prices(settings)
    return {
        "templates": templates_digest(),
        "judges": ", ".join(_judges(settings)),
        "prices": "; ".join(
            f"{model} {price.read} {price.written}" for model, price in prices.items()
        ),
        "cut-off": settings.llm_cutoff,
        "judge figures": figures_digest(),
        **_provenance_inputs(root, month),
    }


def _provenance_inputs(root: DataRoot, month: str) -> dict[str, str]:
    """Digests of ledgers and of people's ratings, and what files say beside their rows: why
    something was not run.
    """
    files = {
        f"ledger {stage}": root.ledger_file(stage, month)
        for stage in (*FUNNEL_STAGES, *MODEL_STAGES)
    }
    files |= {
        name: root.file(table, month)
        for name, table in (
            ("human ratings", tables.HUMAN_RATINGS),
            ("human grades", tables.HUMAN_GRADES),
        )
    }
    read = {name: read_provenance(file) for name, file in files.items()}
    digests = {name: provenance.rows_sha256 for name, provenance in read.items() if provenance}
    for stage in MODEL_STAGES:
        provenance = read_provenance(root.file(tables.TABLES[stage], month))
        if provenance is not None:
            digests[f"off {stage}"] = str(provenance.notes.get("off", ""))
    retrieval = json.dumps(retrieval_notes(root, month), sort_keys=True)
    return digests | {
        f"notes {tables.RETRIEVAL_SCORES.name}": hashlib.sha256(retrieval.encode()).hexdigest()
    }


def outputs_exist(workspace: Workspace, month: str, written: Provenance) -> bool:
    """Whether every file of the month exists, byte for byte, and the overall page at all.

    On an object store by name and length: reading hundreds of pages for a status would take as many
    requests, and an upload is never seen in part.
    """
    root = workspace.root
    if not (root.path / FOLDER / "index.html").is_file():
        return False
    with listing_cache():
        return all(
            _is_whole(root.path / row["path"], row) for row in root.rows(tables.REPORT, month)
        )


def _is_whole(file: DataPath, row: Row) -> bool:
    if not file.is_file():
        return False
    if isinstance(file, Path):
        return hashlib.sha256(file.read_bytes()).hexdigest() == str(row["sha256"])
    return file.stat().st_size == int(row["bytes"])
