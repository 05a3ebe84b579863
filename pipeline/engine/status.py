"""Status of every month: which stages are done, out of date, missing or failed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipeline.engine.failures import check_name, read_failure
from pipeline.engine.parts import failed_requests
from pipeline.engine.run import State, state
from pipeline.engine.stage import Stage, Workspace
from pipeline.errors import CiteloomError
from pipeline.storage.provenance import read_provenance
from pipeline.storage.store import file_stat


def stages_due(
    stages: Sequence[Stage],
    workspace: Workspace,
    month: str,
    *,
    force: bool = False,
    completes: bool = False,
) -> list[Stage]:
    """The stages that a month needs: missing, out of date, below one that is, or failed checks.

    completes: those that are incomplete too. A command of the user completes months; nothing that
    runs by itself begins a month for that alone.
    """
    fine = {State.DONE} if completes else {State.DONE, State.INCOMPLETE}
    due: list[Stage] = []
    for stage in stages:
        below = stage.waits_for & {other.name for other in due}
        check_failed = read_failure(workspace, check_name(stage.name), month) is not None
        if force or below or check_failed or state(stage, workspace, month) not in fine:
            due.append(stage)
    return due


def month_status(stages: Sequence[Stage], workspace: Workspace, month: str) -> list[dict[str, Any]]:
    """A row for each stage: month, stage, state, rows, written_at, left_out, off, failed_requests,
    and failure, the last message with what a rerun does.
    """
    with workspace.read_cache():
        due = {stage.name for stage in stages_due(stages, workspace, month)}
        return [_stage_status(workspace, stage, month, due=stage.name in due) for stage in stages]


def _stage_status(workspace: Workspace, stage: Stage, month: str, *, due: bool) -> dict[str, Any]:
    file = workspace.root.file(stage.table, month)
    failure = None
    if due:
        failure = read_failure(workspace, stage.name, month) or read_failure(
            workspace, check_name(stage.name), month
        )
    try:
        provenance = read_provenance(file)
    except CiteloomError as error:
        provenance, failure = None, str(error)
    failed = failed_requests(provenance) if provenance else {}
    if failure:
        state_name = "failed"
    elif not due:
        state_name = (State.INCOMPLETE if failed else State.DONE).value
    else:
        state_name = (State.STALE if file.exists() else State.MISSING).value
    return {
        "month": month,
        "stage": stage.name,
        "state": state_name,
        "rows": provenance.rows if provenance else None,
        "written_at": file_stat(file).st_mtime if provenance else None,
        "left_out": dict(provenance.left_out) if provenance else {},
        "off": str(provenance.notes.get("off", "")) if provenance else "",
        "failed_requests": dict(failed),
        "failure": failure,
    }
