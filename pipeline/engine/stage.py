"""How a stage runs: one table, one month, whole or absent, and only where it is missing or out of date.

A `Stage` says what a table is computed from; `run_stage` computes it. A month is up to date while the fingerprint in
its file equals the one that its inputs, settings and code give now.
"""

from __future__ import annotations

import hashlib
import json
import time
import traceback
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
from filelock import FileLock, Timeout
from pydantic import SecretStr

from pipeline import __version__
from pipeline.engine import progress, shutdown, telemetry
from pipeline.engine.failures import failure_file, kept_failure, kind_of
from pipeline.engine.redaction import collect_secrets, redact_error
from pipeline.engine.run_stats import Timing, note_timing
from pipeline.errors import CiteloomError, MissingInput, TransientFailure, exit_code_of, unforeseen
from pipeline.settings import Settings
from pipeline.storage.data_root import DataRoot
from pipeline.storage.provenance import Provenance, read_provenance
from pipeline.storage.writing import MonthWriter, Row, write_whole
from pipeline.tables import LEDGER, TABLES, Table

T = TypeVar("T")


class State(StrEnum):
    """How a month of a table stands."""

    DONE = "done"
    MISSING = "missing"
    STALE = "stale"


@dataclass(frozen=True)
class Workspace:
    """What every stage is given: the settings, and the data root they name."""

    settings: Settings

    @cached_property
    def root(self) -> DataRoot:
        return DataRoot(self.settings.data_root)

    @property
    def local(self) -> Path:
        """The folder on this machine's disk for what need not be seen from others; the data root, where that is one."""
        return self.settings.local_root

    def cache(self, name: str) -> Path:
        """A folder on this machine's disk for what can be made again, and for locks."""
        folder = self.local / "cache" / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder


Build = Callable[["Job"], Iterable[Row | pa.RecordBatch]]
Inputs = Callable[[Workspace, str], Mapping[str, str]]
Check = Callable[[Workspace, str, Provenance], bool]
Off = Callable[[Settings], str]


def _nothing(workspace: Workspace, month: str) -> Mapping[str, str]:
    return {}


def _on(settings: Settings) -> str:
    return ""


def _always(workspace: Workspace, month: str, provenance: Provenance) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Stage:
    """One table and how a month of it comes about.

    upstream: tables whose same month it reads. settings: those that change its rows. version: raised when the code
    gives other rows. inputs: digests of whatever else it reads (zips, other months, prompts), by name.
    still_holds: whether what it made outside its table (points in the index, a page) is still there.
    off: why the settings do not ask for it; empty where they do. Its months are then there, and hold no rows.
    """

    table: Table
    build: Build
    upstream: tuple[Table, ...] = ()
    settings: tuple[str, ...] = ()
    version: int = 1
    inputs: Inputs = _nothing
    still_holds: Check = _always
    off: Off = _on

    @property
    def name(self) -> str:
        return self.table.name


@dataclass(slots=True)
class Job:
    """One stage at work on one month: what `build` reads from, and where it reports what it leaves out."""

    workspace: Workspace
    month: str
    stage: Stage
    force: bool = False
    """Whether nothing made before may be taken over."""
    ledger: list[Row] = field(default_factory=list)
    notes: dict[str, Any] = field(default_factory=dict)
    """Facts of the month that depend on its inputs alone; kept in the file's metadata."""
    measured: dict[str, Any] = field(default_factory=dict)
    """Facts of this run alone (cache hits, bytes read); shown, never kept in the file."""
    expected: int | None = None
    """How many rows, or other things that `advance` counts, the month has; None where nobody can say."""
    afterwards: list[Callable[[], None]] = field(default_factory=list)
    """What is done once the month is in place, such as removing what an interrupted run alone would need."""

    @property
    def settings(self) -> Settings:
        return self.workspace.settings

    def rows(self, table: Table, columns: list[str] | None = None) -> list[dict[str, Any]]:
        """All rows of an upstream table's month."""
        return self.workspace.root.rows(table, self.month, columns)

    def iterate(self, table: Table, columns: list[str] | None = None) -> Iterator[dict[str, Any]]:
        """The rows of an upstream table's month, one by one in bounded memory."""
        return self.workspace.root.iterate(table, self.month, columns)

    def batches(self, table: Table, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows of an upstream table's month as Arrow batches, a row group or less at a time."""
        return self.workspace.root.batches(table, self.month, columns)

    def expect(self, total: int) -> None:
        """Say how much there is to do, so that whoever waits is told how long it takes."""
        self.expected = total

    def advance(self, done: int) -> None:
        """Tell how much is done, in what `expect` counts."""
        progress.advanced(self.stage.name, self.month, done, self.expected)

    def leave_out(self, subject: str, reason: str, detail: str = "") -> None:
        """Record one thing that does not go on, with its reason."""
        self.ledger.append({"subject": subject, "stage": self.stage.name, "reason": reason, "detail": detail})


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of running a stage on a month."""

    stage: str
    month: str
    rows: int
    kept: bool
    """Whether the month was up to date and left as it was."""
    seconds: float
    bytes: int
    left_out: Mapping[str, int]
    notes: Mapping[str, Any]
    measured: Mapping[str, Any]

    @property
    def is_off(self) -> bool:
        """Whether the settings do not ask for it: its month is there, and empty."""
        return "off" in self.notes


def fingerprint(stage: Stage, workspace: Workspace, month: str) -> Provenance:
    """The provenance that a run would write now, rows not yet counted. Raises MissingInput without an upstream."""
    off = stage.off(workspace.settings)
    if off:  # an empty month is the same empty month whatever else changes
        inputs, settings = {"off": off}, {}
    else:
        inputs = {**_upstream_digests(stage, workspace, month), **stage.inputs(workspace, month)}
        settings = {name: _plain(getattr(workspace.settings, name)) for name in stage.settings}
    basis = {
        "stage": stage.name,
        "month": month,
        # The columns as well as their version: a column that changed without it must not pass for up to date.
        "schema": [stage.table.version, stage.table.schema.to_string(show_field_metadata=False)],
        "version": stage.version,
        "settings": settings,
        "inputs": inputs,
    }
    digest = hashlib.sha256(json.dumps(basis, sort_keys=True).encode()).hexdigest()
    return Provenance(stage.name, month, stage.table.version, stage.version, __version__, digest, settings, inputs)


def _upstream_digests(stage: Stage, workspace: Workspace, month: str) -> dict[str, str]:
    digests = {}
    for table in stage.upstream:
        provenance = read_provenance(workspace.root.file(table, month))
        if provenance is None:
            raise MissingInput(
                f"{stage.name} of {month} needs {table.name}, which is not there: "
                f"run citeloom run --months {month} --until {stage.name}"
            )
        digests[table.name] = provenance.rows_sha256
    return digests


def _plain(value: object) -> Any:
    if isinstance(value, SecretStr):
        raise TypeError("a secret cannot be among the settings that a file records")
    if isinstance(value, Path):
        return str(value)
    return list(value) if isinstance(value, tuple) else value


def state(stage: Stage, workspace: Workspace, month: str) -> State:
    """How a month of a stage stands, with its inputs as they are now.

    A file that is damaged, or whose inputs are, is stale: running it makes it again, or says what is wrong.
    """
    try:
        written = read_provenance(workspace.root.file(stage.table, month))
        if written is None:
            return State.MISSING
        same = written.fingerprint == fingerprint(stage, workspace, month).fingerprint
        return State.DONE if same and stage.still_holds(workspace, month, written) else State.STALE
    except CiteloomError:
        return State.STALE


def run_stage(stage: Stage, workspace: Workspace, month: str, *, force: bool = False) -> Outcome:
    """Compute a month of a stage where it is missing or out of date, or always with `force`.

    A second run of the same month waits for the first and then finds it done. A failure is recorded for
    `citeloom status` and raised; what was there before stays.
    """
    with (
        telemetry.stage(workspace.settings, stage.name, month) as told,
        _failure_told(stage, workspace, month),
        exclusive(stage, workspace, month),
    ):
        started = time.perf_counter()
        progress.started(stage.name, month)
        job = Job(workspace, month, stage, force)
        written = None if force else _if_done(stage, workspace, month)
        provenance = written or _compute(job)
        forget_failure(workspace, stage.name, month)
        seconds = time.perf_counter() - started
        outcome = outcome_of(workspace, provenance, kept=written is not None, seconds=seconds, measured=job.measured)
        if written is None:
            note_timing(workspace.root, stage.name, month, Timing(provenance.fingerprint, seconds, outcome.measured))
        told.made(outcome)
        progress.finished(outcome)
        return outcome


@contextmanager
def _failure_told(stage: Stage, workspace: Workspace, month: str) -> Iterator[None]:
    """Keep and tell what ends the block, the lock's own failures included, and raise it without its secrets."""
    try:
        yield
    except Exception as error:
        clean = redact_error(error, collect_secrets(workspace.settings))
        message = record_failure(workspace, stage.name, month, clean)
        progress.failed(stage.name, month, message, exit_code_of(clean))
        if clean is error:
            raise
        raise clean from clean.__cause__


def _if_done(stage: Stage, workspace: Workspace, month: str) -> Provenance | None:
    if state(stage, workspace, month) is not State.DONE:
        return None
    return read_provenance(workspace.root.file(stage.table, month))


def _compute(job: Job) -> Provenance:
    stage, root = job.stage, job.workspace.root
    expected = fingerprint(stage, job.workspace, job.month)
    with MonthWriter(stage.table, root.file(stage.table, job.month)) as writer:
        with _ended(_rows(job)) as building:
            for made in building:
                _write(writer, made)
                if writer.added % 100 == 0 or isinstance(made, pa.RecordBatch):
                    # What is left out is done with, too: pages that are to become papers are counted with both.
                    job.advance(writer.added + len(job.ledger))
        shutdown.check_fence()
        # The ledger goes first: the table's file is what says that the month is done.
        _write_ledger(job, expected)
        written = writer.commit(_complete(expected, job))
    for work in job.afterwards:
        work()
    return written


def _rows(job: Job) -> Iterable[Row | pa.RecordBatch]:
    """What the stage makes of the month; nothing where it is off, which the month's notes say."""
    off = job.stage.off(job.settings)
    if off:
        job.notes["off"] = off
        return ()
    return job.stage.build(job)


@contextmanager
def _ended(rows: Iterable[T]) -> Iterator[Iterable[T]]:
    """The rows; where writing fails midway, their generator ends at once, and with it the workers it keeps busy."""
    try:
        yield rows
    finally:
        if isinstance(rows, Generator):
            rows.close()


def _write(writer: MonthWriter, made: Row | pa.RecordBatch) -> None:
    if isinstance(made, pa.RecordBatch):
        writer.add_batch(made)
    else:
        writer.add(made)


def _write_ledger(job: Job, provenance: Provenance) -> None:
    with MonthWriter(LEDGER, job.workspace.root.ledger_file(job.stage.name, job.month)) as writer:
        for row in job.ledger:
            writer.add(row)
        writer.commit(provenance)


def _complete(provenance: Provenance, job: Job) -> Provenance:
    left_out = Counter(row["reason"] for row in job.ledger)
    return replace(provenance, left_out=dict(sorted(left_out.items())), notes=job.notes)


def outcome_of(
    workspace: Workspace, written: Provenance, *, kept: bool, seconds: float, measured: Mapping[str, Any]
) -> Outcome:
    """What is told of a month that stands, given what its file says of itself."""
    return Outcome(
        stage=written.table,
        month=written.month,
        rows=written.rows,
        kept=kept,
        seconds=seconds,
        bytes=workspace.root.file(TABLES[written.table], written.month).stat().st_size,
        left_out=written.left_out,
        notes=written.notes,
        measured=dict(measured),
    )


class exclusive:  # noqa: N801 - reads as a statement: with exclusive(...)
    """Holds the month of a stage for this process; waits for another process that holds it."""

    def __init__(self, stage: Stage, workspace: Workspace, month: str) -> None:
        file = workspace.cache("locks") / f"{stage.name}-{month}.lock"
        self._lock = FileLock(file, timeout=6 * 3600)

    def __enter__(self) -> None:
        try:
            self._lock.acquire(cancel_check=shutdown.requested)
        except Timeout as error:
            shutdown.end_if_asked()
            message = f"another run has held {error.lock_file} for six hours: end it, then run again"
            raise TransientFailure(message) from error

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def record_failure(workspace: Workspace, stage: str, month: str, error: Exception) -> str:
    """Keep what is known of a failed month until it succeeds; the message for the user.

    An error that nobody foresaw is named as such, with the file that holds its traceback.
    """
    file = failure_file(workspace.root, stage, month)
    message = str(error) if isinstance(error, CiteloomError) else unforeseen(error, file)
    trace = "".join(traceback.format_exception(error))
    told = {"stage": stage, "month": month, "message": message, "kind": kind_of(error), "traceback": trace}
    # The disk or the store may be what failed: the message is told all the same, and not kept.
    with suppress(CiteloomError, OSError):
        write_whole(file, json.dumps(told).encode())
    return message


def read_failure(workspace: Workspace, stage: str, month: str) -> str | None:
    """The message of the last failure of a month, or None."""
    found = kept_failure(workspace.root, stage, month)
    return None if found is None else found.message


def forget_failure(workspace: Workspace, stage: str, month: str) -> None:
    """Drop what is known of a failure: the month is done now."""
    failure_file(workspace.root, stage, month).unlink(missing_ok=True)
