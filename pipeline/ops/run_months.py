"""Which months and stages are to run, and running them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.arxiv.months import select_months
from pipeline.corpus.dump.catalogue import broken_zips, months_in_dump
from pipeline.engine import progress, telemetry
from pipeline.engine.failures import forget_asked, note_asked
from pipeline.engine.stage import (
    Outcome,
    Stage,
    State,
    Workspace,
    forget_failure,
    outcome_of,
    read_failure,
    record_failure,
)
from pipeline.engine.stages_due import check_of, pending
from pipeline.errors import CiteloomError, MissingInput, PermanentFailure, SettingError, exit_code_of
from pipeline.index import close_indexes
from pipeline.stages import STAGES
from pipeline.storage.provenance import read_provenance
from pipeline.storage.store import looking_once
from pipeline.tables import DUMP_MEMBERS, PAPERS
from pipeline.wikipedia.root import held_snapshot, is_own
from resources.dagster_home import write_instance_config


@dataclass(slots=True)
class RunReport(progress.Listener):
    """What came of a run: an outcome per stage and month, and the messages of what failed."""

    outcomes: list[Outcome] = field(default_factory=list)
    failures: list[tuple[str, str, str]] = field(default_factory=list)
    """(stage, month, message)"""
    exit_code: int = 0

    def finished(self, outcome: Outcome) -> None:
        """Note what came of a stage."""
        self.outcomes.append(outcome)

    def failed(self, stage: str, month: str, message: str, exit_code: int = 1) -> None:
        """Note what failed, and why."""
        self.failures.append((stage, month, message))
        self.exit_code = max(self.exit_code, exit_code)


def run_months(
    workspace: Workspace, months: Sequence[str], stages: Sequence[Stage], *, force: bool = False
) -> RunReport:
    """Run what the months need, oldest first; a month that fails leaves the others to go on."""
    report = RunReport()
    with telemetry.run(workspace.settings, len(months)), progress.listening(report):
        tell_of_broken_zips(workspace, stages)
        for month in months:
            run_month(workspace, stages, month, report, force=force)
            keep_asked(workspace, stages, month, report)
    return report


def keep_asked(workspace: Workspace, stages: Sequence[Stage], month: str, report: RunReport) -> None:
    """Keep how far a month was to be run, where it failed: `citeloom retry-failed` goes on from there."""
    if any(of == month for _, of, _ in report.failures):
        note_asked(workspace.root, month, (stage.name for stage in stages))
    else:
        forget_asked(workspace.root, month)
        forget_failure(workspace, "run", month)


def tell_of_broken_zips(workspace: Workspace, stages: Sequence[Stage]) -> None:
    """Tell of each zip that cannot be used, where the stages read zips; its pages are missing, whatever becomes of
    those in the other zips."""
    if any(stage.table is DUMP_MEMBERS for stage in stages):
        for message in broken_zips(workspace.settings):
            progress.failed("dump", "all months", message)


def run_month(workspace: Workspace, stages: Sequence[Stage], month: str, report: RunReport, *, force: bool) -> None:
    """Run what a month needs of some stages; `report`, which listens, is told what comes of it."""
    try:
        with telemetry.month(workspace.settings, month):
            _run_pending(workspace, stages, month, report, force=force)
    except CiteloomError as error:
        progress.failed("run", month, str(error), exit_code_of(error))


def _run_pending(workspace: Workspace, stages: Sequence[Stage], month: str, report: RunReport, *, force: bool) -> None:
    from pipeline.definitions import run_in_process

    with looking_once():
        due = pending(stages, workspace, month, force=force)
        close_indexes()  # asking how the month stands has opened it; it belongs to one process at a time
        for stage in stages:
            if stage not in due:
                _tell_kept(workspace, stage, month)
    if not due:
        return
    before = len(report.failures)
    result = run_in_process(due, month, dagster_home(workspace), force=force)
    _remember_checks(workspace, due, month, result.blocked)
    if not result.succeeded and len(report.failures) == before:
        reason = result.reason or "its page in citeloom ui shows why"
        progress.failed("run", month, f"Dagster ended it: {reason}")


def failure_of(workspace: Workspace, stage: Stage, month: str) -> str | None:
    """What is known of a month's failure in a stage, or of its blocking check's; None where it did not fail."""
    names = (stage.name, check_of(stage))
    return next(filter(None, (read_failure(workspace, name, month) for name in names)), None)


def _remember_checks(workspace: Workspace, ran: Sequence[Stage], month: str, blocked: Mapping[str, str]) -> None:
    """Keep which stages are done and did not pass a blocking check: the next run must not go on below them."""
    with looking_once():
        for stage in ran:
            if stage.name in blocked:
                record_failure(workspace, check_of(stage), month, PermanentFailure(blocked[stage.name]))
            else:
                forget_failure(workspace, check_of(stage), month)


def _tell_kept(workspace: Workspace, stage: Stage, month: str) -> None:
    forget_failure(workspace, stage.name, month)
    written = read_provenance(workspace.root.file(stage.table, month))
    if written is not None:
        progress.finished(outcome_of(workspace, written, kept=True, seconds=0.0, measured={}))


def dagster_home(workspace: Workspace) -> Path:
    """The folder of Dagster's instance in the data root, holding its dagster.yaml; set as DAGSTER_HOME.

    Raises SettingError as `write_instance_config` does.
    """
    home = workspace.local / "dagster"
    home.mkdir(parents=True, exist_ok=True)
    write_instance_config(workspace.settings, home)
    os.environ["DAGSTER_HOME"] = str(home)
    return home


def status(workspace: Workspace, months: Sequence[str]) -> list[dict[str, Any]]:
    """How every stage of every month stands: state, rows, when it was written, ledger counts, failure."""
    with looking_once():
        return [row for month in months for row in _month_status(workspace, month)]


def _month_status(workspace: Workspace, month: str) -> list[dict[str, Any]]:
    stages = STAGES
    if held_snapshot(workspace.root):
        stages = tuple(stage for stage in STAGES if is_own(stage.name, workspace.settings))
    due = {stage.name for stage in pending(stages, workspace, month)}
    return [_stage_status(workspace, stage, month, due=stage.name in due) for stage in stages]


def _stage_status(workspace: Workspace, stage: Stage, month: str, *, due: bool) -> dict[str, Any]:
    file = workspace.root.file(stage.table, month)
    failure = failure_of(workspace, stage, month) if due else None
    try:
        written = read_provenance(file)
    except CiteloomError as error:
        written, failure = None, str(error)
    stale = State.STALE if file.exists() else State.MISSING
    return {
        "month": month,
        "stage": stage.name,
        "state": "failed" if failure else (stale if due else State.DONE).value,
        "rows": written.rows if written else None,
        "written_at": file.stat().st_mtime if written else None,
        "left_out": dict(written.left_out) if written else {},
        "off": str(written.notes.get("off", "")) if written else "",
        "failure": failure,
    }


def known_months(workspace: Workspace, selection: str) -> list[str]:
    """The months of the dump that a selection names; raises SettingError where it names none of them.

    Where the data root holds Wikipedia, its snapshot's month: it is of no dump of arXiv's.
    """
    if held_snapshot(workspace.root):
        return select_months(selection, workspace.root.months(PAPERS))
    return select_months(selection, months_in_dump(workspace.settings))


def months_of_status(workspace: Workspace, selection: str) -> tuple[list[str], str | None]:
    """The months of the dump and of the data root that a selection names, and what is wrong with the dump, if it is."""
    if held_snapshot(workspace.root):
        return known_months(workspace, selection), None
    held = set(workspace.root.months(DUMP_MEMBERS))
    try:
        months = select_months(selection, held.union(months_in_dump(workspace.settings)))
        return months, "\n".join(broken_zips(workspace.settings)) or None
    except (MissingInput, SettingError) as error:
        if not held:
            raise
        return select_months(selection, held), str(error)
