"""Compute a month of a stage where it is missing or out of date: `run_stage`.

The command line and Dagster both call it. A month is up to date while the fingerprint in its file
equals the one that its inputs, settings and code give now.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from enum import StrEnum
from functools import partial
from typing import Any

import pyarrow as pa

from pipeline import __version__
from pipeline.engine import shutdown
from pipeline.engine.digests import json_digest
from pipeline.engine.failures import forget_failure, record_failure
from pipeline.engine.finish import mark_unfinished
from pipeline.engine.locks import month_lock, pool_lock
from pipeline.engine.parts import PartedStage, failed_requests
from pipeline.engine.progress import Outcome, StageFailed, StageFinished, StageStarted, publish
from pipeline.engine.redaction import collect_secrets, redact_error
from pipeline.engine.run_stats import StageTiming, note_timing
from pipeline.engine.stage import Job, Stage, Workspace
from pipeline.errors import CiteloomError, MissingInput, exit_code_of, name_full_disk
from pipeline.stage_names import plain_name
from pipeline.storage.provenance import Provenance
from pipeline.storage.read_cache import once
from pipeline.storage.store import file_stat
from pipeline.storage.writing import MonthWriter, Row
from pipeline.system_names import name_in_digests
from pipeline.tables import LEDGER, TABLES


class State(StrEnum):
    """The state of a stage's month."""

    DONE = "done"
    MISSING = "missing"
    STALE = "stale"
    INCOMPLETE = "incomplete"
    """Up to date, but for what a language model did not answer."""


def fingerprint(stage: Stage, workspace: Workspace, month: str) -> Provenance:
    """The provenance that a run would write now, rows not yet counted. Raises MissingInput without
    an upstream.
    """
    disabled = stage.disabled_reason(workspace.settings)
    if disabled:  # an empty month does not depend on inputs and settings
        inputs, settings = {"off": disabled}, {}
    else:
        if isinstance(stage, PartedStage):
            inputs = {
                name_in_digests(name): digest
                for name, digest in stage.fingerprints(workspace, month).items()
            }
        else:
            inputs = {
                **_upstream_digests(stage, workspace, month),
                **stage.inputs(workspace, month),
            }
        settings = stage.setting_values(workspace.settings)
    # Formatted once for all months.
    write_columns = partial(stage.table.schema.to_string, show_field_metadata=False)
    columns = once(("columns", stage.table.name, stage.table.version), write_columns)
    basis = {
        "stage": stage.name,
        "month": month,
        # The columns as well as their version: a column that changed without it must not pass for
        # up to date.
        "schema": [stage.table.version, columns],
        "version": stage.version,
        "settings": settings,
        "inputs": inputs,
    }
    digest = json_digest(basis)
    return Provenance(
        stage.name, month, stage.table.version, stage.version, __version__, digest, settings, inputs
    )


def _upstream_digests(stage: Stage, workspace: Workspace, month: str) -> dict[str, str]:
    digests = {}
    for table in stage.upstream:
        provenance = workspace.root.provenance(table, month)
        if provenance is None:
            name = plain_name(stage.name)
            raise MissingInput(
                f"{name} of {month} needs {table.name}, which is not in"
                f" {workspace.root.path}: run citeloom run --months {month} --until {name}"
            )
        digests[table.name] = provenance.rows_sha256
    return digests


def state(stage: Stage, workspace: Workspace, month: str) -> State:
    """The state of a stage's month under its inputs, settings and code as they are now.

    A damaged file, or one with damaged inputs, is stale: running it makes it again, or says what is
    wrong.
    """
    try:
        written = workspace.root.provenance(stage.table, month)
        if written is None:
            return State.MISSING
        holds = (
            written.fingerprint == fingerprint(stage, workspace, month).fingerprint
            and stage.lookups_hold(workspace, month, written)
            and stage.outputs_exist(workspace, month, written)
        )
        if not holds:
            return State.STALE
        return State.INCOMPLETE if failed_requests(written) else State.DONE
    except CiteloomError:
        return State.STALE


def run_stage(stage: Stage, workspace: Workspace, month: str, *, force: bool = False) -> Outcome:
    """Compute a month of a stage where it is missing, out of date or incomplete, or always with
    `force`.

    A second run of the same month waits for the first and then skips it. A failure is recorded for
    `citeloom status` and raised; the month that was there before stays.
    """
    with _recorded_failures(stage, workspace, month), month_lock(workspace, stage.name, month):
        started = time.perf_counter()
        publish(StageStarted(stage.name, month))
        job = Job(workspace, month, stage, force)
        existing = None
        if not force and state(stage, workspace, month) is State.DONE:
            existing = workspace.root.provenance(stage.table, month)
        provenance = existing or _compute(job)
        forget_failure(workspace, stage.name, month)
        seconds = time.perf_counter() - started
        outcome = outcome_of(
            workspace,
            provenance,
            skipped=existing is not None,
            seconds=seconds,
            measured=job.measured,
        )
        if existing is None:
            note_timing(
                workspace.root,
                stage.name,
                month,
                StageTiming(provenance.fingerprint, seconds, outcome.measured),
            )
        publish(StageFinished(outcome))
        return outcome


@contextmanager
def _recorded_failures(stage: Stage, workspace: Workspace, month: str) -> Iterator[None]:
    """Record and re-raise exceptions, with secrets redacted; those of taking the month's lock
    included.
    """
    try:
        yield
    except Exception as error:
        secrets = collect_secrets(workspace.settings)
        clean = redact_error(name_full_disk(error, workspace.local), secrets)
        message = record_failure(workspace, stage.name, month, clean)
        publish(StageFailed(stage.name, month, message, exit_code_of(clean)))
        if clean is error:
            raise
        raise clean from clean.__cause__


def _compute(job: Job) -> Provenance:
    """Build the month, write its ledger, then its table; whole or not at all."""
    stage, workspace = job.stage, job.workspace
    expected = fingerprint(stage, workspace, job.month)
    mark_unfinished(workspace, stage)
    disabled = stage.disabled_reason(job.settings)
    if disabled:
        job.notes["off"] = disabled
    pool = None if disabled else stage.pool
    with (
        pool_lock(workspace, pool),
        MonthWriter(stage.table, workspace.root.file(stage.table, job.month)) as writer,
    ):
        # Closed where writing fails midway, so that its worker processes end.
        with closing(_build(job, disabled=bool(disabled))) as rows:
            for item in rows:
                if isinstance(item, pa.RecordBatch):
                    writer.add_batch(item)
                else:
                    writer.add(item)
                if writer.added % 100 == 0 or isinstance(item, pa.RecordBatch):
                    # What is left out is done with, too: pages that are to become papers are
                    # counted with both.
                    job.advance(writer.added + len(job.ledger))
        shutdown.check_fence()
        # The ledger goes first: the table's file is what says that the month is done.
        _write_ledger(job, expected)
        left_out = Counter(row["reason"] for row in job.ledger)
        written = writer.commit(
            replace(
                expected,
                inputs={**expected.inputs, **job.looked_up},
                left_out=dict(sorted(left_out.items())),
                notes=job.notes,
            )
        )
    for work in job.afterwards:
        work()
    return written


def _build(job: Job, *, disabled: bool) -> Generator[Row | pa.RecordBatch, None, None]:
    """The rows of the month; none where the stage is disabled."""
    if not disabled:
        yield from job.stage.build(job)


def _write_ledger(job: Job, provenance: Provenance) -> None:
    with MonthWriter(LEDGER, job.workspace.root.ledger_file(job.stage.name, job.month)) as writer:
        for row in job.ledger:
            writer.add(row)
        writer.commit(provenance)


def outcome_of(
    workspace: Workspace,
    written: Provenance,
    *,
    skipped: bool,
    seconds: float = 0.0,
    measured: Mapping[str, Any] | None = None,
) -> Outcome:
    """The outcome of a month that is in place, from what its file records."""
    return Outcome(
        stage=written.table,
        month=written.month,
        rows=written.rows,
        skipped=skipped,
        seconds=seconds,
        bytes=file_stat(workspace.root.file(TABLES[written.table], written.month)).st_size,
        left_out=written.left_out,
        notes=written.notes,
        measured=dict(measured or {}),
    )
