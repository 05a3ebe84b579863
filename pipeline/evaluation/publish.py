"""The report's files below the data root: `reports/index.html` and `reports/<month>/`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from filelock import FileLock

from pipeline import tables
from pipeline.engine.digests import digest_of
from pipeline.engine.stage import Job, Workspace
from pipeline.evaluation.judge_check.record import checks_digest
from pipeline.evaluation.report.answer_people import people_section
from pipeline.evaluation.report.answers.costs import run_section as answers_run_section
from pipeline.evaluation.report.answers.found import AnswersFound, find_answers
from pipeline.evaluation.report.answers.names import ANSWERS_PAGE
from pipeline.evaluation.report.answers.questions import Asked, question_views
from pipeline.evaluation.report.answers.view import answers_view
from pipeline.evaluation.report.answers.views import AnswersPage
from pipeline.evaluation.report.corpus import CORPUS_STAGES, retrieval_notes
from pipeline.evaluation.report.costs import run_section
from pipeline.evaluation.report.failed import ANSWER_STAGES, LLM_STAGES, PAGE, failed_view
from pipeline.evaluation.report.found import Found, find, prices_of
from pipeline.evaluation.report.month import month_view
from pipeline.evaluation.report.months import index_view
from pipeline.evaluation.report.pages import (
    answers_page,
    failed_page,
    index_page,
    month_page,
    question_page,
    run_page,
    task_page,
    templates_digest,
    written_page,
)
from pipeline.evaluation.report.plain import month_json, month_markdown
from pipeline.evaluation.report.tasks import Tally, task_views
from pipeline.evaluation.report.views import RunView
from pipeline.settings import Settings
from pipeline.settings.validators import OVERLAP_JUDGE
from pipeline.storage.data_root import DataRoot
from pipeline.storage.provenance import Provenance, read_provenance
from pipeline.storage.store import DataPath, listing_cache
from pipeline.storage.writing import Row, write_whole

FOLDER = "reports"
RUN_PAGE = "run.html"


def publish(job: Job) -> Iterator[Row]:
    """Write the overall index, then the month's pages, and yield a row of `report` for each of the month's files.

    The overall index goes first: the month's table is what says that the month is done, so whatever is killed before
    it is written again, index and all. It is no row, for the next month changes it; and neither is the page of what
    runs took, for another run of the same month does.
    """
    root = job.workspace.root
    write_overall_index(job.workspace)
    folder = root.path / FOLDER / job.month
    found = shown_numbers(job.workspace, job.month)
    answers = _answers(job.workspace, job.month)
    write_whole(folder / RUN_PAGE, run_page(_runs(root, job.month, found, answers)))
    rows = [_write(root, f"{FOLDER}/{job.month}/{name}", content) for name, content in _files(job, found, answers)]
    _remove_others(folder, {Path(row["path"]).name for row in rows})
    yield from sorted(rows, key=lambda row: str(row["path"]))


def _runs(root: DataRoot, month: str, found: Found, answers: AnswersFound) -> RunView:
    costs = [("index.html#cost", "related work")] if found.systems else []
    costs += [(f"{ANSWERS_PAGE}#cost-of-answers", "answers")] if answers.costs_anything else []
    return RunView(month, run_section(found), answers_run_section(root, answers), costs)


def shown_numbers(workspace: Workspace, month: str) -> Found:
    """A month's numbers of related work, for whoever shows them elsewhere."""
    settings = workspace.settings
    return find(workspace.root, month, _judges(settings), prices_of(settings))


def _answers(workspace: Workspace, month: str) -> AnswersFound:
    settings = workspace.settings
    return find_answers(workspace.root, month, _judges(settings), prices_of(settings), settings.llm_cutoff)


def _judges(settings: Settings) -> list[str]:
    """The judges of this run in their order; overlap judges citations alone, so the default model comes after it."""
    return list(settings.judges if set(settings.judges) - {OVERLAP_JUDGE} else (*settings.judges, settings.llm_model))


def write_overall_index(workspace: Workspace) -> None:
    """Write `reports/index.html` from the tables as they are."""
    settings = workspace.settings
    # Two months may be published at once: whoever holds the lock last has read what the other's tables say.
    with FileLock(workspace.cache("locks") / "overall-index.lock", timeout=600):
        view = index_view(workspace.root, _judges(settings), prices_of(settings), settings.llm_cutoff)
        write_whole(workspace.root.path / FOLDER / "index.html", index_page(view))


def _files(job: Job, found: Found, answers: AnswersFound) -> Iterator[tuple[str, bytes]]:
    """The month's files, name and content: pages of tasks and questions first, for what is counted on the way."""
    root, month = job.workspace.root, job.month
    tally, asked = Tally(), Asked()
    for view in task_views(root, month, found, tally):
        yield view.page, task_page(view)
        if view.tells_more:
            yield view.written_page, written_page(view)
    for question in question_views(root, month, answers, asked):
        yield question.page, question_page(question)
    found.retained = tally.retained
    failed = failed_view(root, month, tally.pages, (*tally.recovered, *asked.recovered), asked.pages)
    told = answers_view(answers, people_section(root, month, answers.grades, answers.shown))
    whole = month_view(root, month, found, failed, tally.lines, told)
    if told.questions:
        yield ANSWERS_PAGE, answers_page(AnswersPage(month, told))
    yield PAGE, failed_page(failed)
    yield "report.md", month_markdown(whole, failed)
    yield "report.json", month_json(whole, failed)
    yield "index.html", month_page(whole)


def _write(root: DataRoot, path: str, content: bytes) -> dict[str, Any]:
    write_whole(root.path / path, content)
    return {"path": path, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def _remove_others(folder: DataPath, names: set[str]) -> None:
    """Remove pages of tasks and questions that are no more, and what a killed run left half written."""
    for pattern in ("task-*.html", "question-*.html", ANSWERS_PAGE, ".*.tmp"):
        for file in folder.glob(pattern):
            if file.name not in names:
                file.unlink(missing_ok=True)


def inputs(workspace: Workspace, month: str) -> Mapping[str, str]:
    """What the pages show besides the rows of tables: the ledgers, why some are empty, people's ratings where there are
    such, who judges first, what tokens cost, the cut-off of old and recent questions and the papers that they were
    asked over; and the templates. Not what runs took and were estimated to: a run that changes no row would make the
    report out of date."""
    root, prices = workspace.root, prices_of(workspace.settings).by_model
    return {
        "templates": templates_digest(),
        "judges": ", ".join(_judges(workspace.settings)),
        "prices": "; ".join(f"{model} {each.read} {each.written}" for model, each in prices.items()),
        "cut-off": workspace.settings.llm_cutoff,
        "judge checks": checks_digest(root),
        **_asked_over(workspace, month),
        **_ledgers(root, month),
        **_notes(root, month),
        **_ratings(root, month),
    }


def _asked_over(workspace: Workspace, month: str) -> dict[str, str]:
    """The papers up to the month, where it has questions: a page says how many these are."""
    root = workspace.root
    written = read_provenance(root.file(tables.QUESTIONS, month))
    if written is None or not written.rows:
        return {}
    so_far = [each for each in root.months(tables.PAPERS) if each <= month]
    return {"papers so far": digest_of(workspace, tables.PAPERS, so_far)}


def _ledgers(root: DataRoot, month: str) -> dict[str, str]:
    stages = (*CORPUS_STAGES, *LLM_STAGES, *ANSWER_STAGES)
    found = {stage: read_provenance(root.ledger_file(stage, month)) for stage in stages}
    return {f"ledger {stage}": written.rows_sha256 for stage, written in found.items() if written}


def _notes(root: DataRoot, month: str) -> dict[str, str]:
    """Digests of what a file says beside its rows, where a page shows it: why something was not measured or run."""
    retrieval = json.dumps(retrieval_notes(root, month), sort_keys=True)
    files = {stage: read_provenance(root.file(tables.TABLES[stage], month)) for stage in (*LLM_STAGES, *ANSWER_STAGES)}
    off = {f"off {stage}": str(written.notes.get("off", "")) for stage, written in files.items() if written}
    return {f"notes {tables.RETRIEVAL_SCORES.name}": hashlib.sha256(retrieval.encode()).hexdigest(), **off}


def _ratings(root: DataRoot, month: str) -> dict[str, str]:
    told = {"human ratings": tables.HUMAN_RATINGS, "human grades": tables.HUMAN_GRADES}
    found = {name: read_provenance(root.file(table, month)) for name, table in told.items()}
    return {name: written.rows_sha256 for name, written in found.items() if written}


def outputs_exist(workspace: Workspace, month: str, written: Provenance) -> bool:
    """Whether every file of the month is there, byte for byte, and the overall index at all.

    On a store, by name and length: to read hundreds of pages whenever a state is asked for would take that many
    requests, and no part of an upload is ever seen.
    """
    root = workspace.root
    if not (root.path / FOLDER / "index.html").is_file():
        return False
    with listing_cache():
        return all(_is_whole(root.path / row["path"], row) for row in root.rows(tables.REPORT, month))


def _is_whole(file: DataPath, row: Row) -> bool:
    if not file.is_file():
        return False
    if isinstance(file, Path):
        return hashlib.sha256(file.read_bytes()).hexdigest() == str(row["sha256"])
    return file.stat().st_size == int(row["bytes"])
