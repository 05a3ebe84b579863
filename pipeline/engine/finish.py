"""Work over all months of a stage, once after its months: the overall page of the report.

A marker in the data root, `unfinished/<stage>.txt`, is written before a month is computed and
removed once the stage's `finish` has run, so that a process that was killed in between loses
nothing: the next command, or Dagster, finishes the stage.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable

from pipeline.engine.failures import forget_failure, record_failure
from pipeline.engine.locks import month_lock, pool_lock
from pipeline.engine.progress import AllMonthsFinished, StageFailed, publish
from pipeline.engine.redaction import collect_secrets, redact_error
from pipeline.engine.stage import Stage, Workspace
from pipeline.errors import exit_code_of
from pipeline.storage.store import DataPath
from pipeline.storage.writing import write_whole

ALL_MONTHS = "all-months"
"""Stands for the month in the lock and in the failure of a stage's `finish`."""


def mark_unfinished(workspace: Workspace, stage: Stage) -> None:
    """Record that the stage's `finish` is due, if it has one."""
    if stage.finishes:
        write_whole(_marker(workspace, stage), uuid.uuid4().hex.encode())


def unfinished_stages(workspace: Workspace, stages: Iterable[Stage]) -> dict[str, str]:
    """Name of each stage whose `finish` is due → its marker, another one after each month."""
    markers: dict[str, str] = {}
    for stage in stages:
        marker = _read_marker(workspace, stage) if stage.finishes else ""
        if marker:
            markers[stage.name] = marker
    return markers


def finish_stages(workspace: Workspace, stages: Iterable[Stage]) -> list[Exception]:
    """Finish every stage that is due. A failure is recorded, published and returned; the others go
    on, and the next call tries again.
    """
    errors = []
    for stage in stages:
        try:
            finish_stage(workspace, stage)
        except Exception as error:
            redacted = redact_error(error, collect_secrets(workspace.settings))
            message = record_failure(workspace, stage.name, ALL_MONTHS, redacted)
            publish(StageFailed(stage.name, ALL_MONTHS, message, exit_code_of(redacted)))
            errors.append(redacted)
    return errors


def finish_stage(workspace: Workspace, stage: Stage) -> None:
    """Finish a stage where it is due. Raises what its `finish` raises.

    A month that another process computes meanwhile leaves the stage due.
    """
    if not stage.finishes or not _read_marker(workspace, stage):
        return
    with month_lock(workspace, stage.name, ALL_MONTHS), pool_lock(workspace, stage.pool):
        marker = _read_marker(workspace, stage)
        if not marker:  # another process has finished it
            return
        started = time.perf_counter()
        stage.finish(workspace)
        if _read_marker(workspace, stage) == marker:
            _marker(workspace, stage).unlink(missing_ok=True)
    forget_failure(workspace, stage.name, ALL_MONTHS)
    publish(AllMonthsFinished(stage.name, time.perf_counter() - started))


def _read_marker(workspace: Workspace, stage: Stage) -> str:
    try:
        return _marker(workspace, stage).read_text()
    except FileNotFoundError:
        return ""


def _marker(workspace: Workspace, stage: Stage) -> DataPath:
    return workspace.root.path / "unfinished" / f"{stage.name}.txt"
