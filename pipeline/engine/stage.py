"""Stages: one table and how a month of it is built, its parts and checks, and a build's job."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import pyarrow as pa

from pipeline.engine.progress import StageAdvanced, publish
from pipeline.settings import Settings
from pipeline.storage.data_root import DataRoot
from pipeline.storage.provenance import Provenance
from pipeline.storage.read_cache import read_cache
from pipeline.storage.writing import Row
from pipeline.tables import Table
from pipeline.text import one_line


@dataclass(frozen=True)
class Workspace:
    """The settings, and the data root they name: all that a stage is given."""

    settings: Settings

    @cached_property
    def root(self) -> DataRoot:
        return DataRoot(self.settings.data_root)

    @property
    def local(self) -> Path:
        """The local folder for locks, caches and Dagster's state; often the data root itself."""
        return self.settings.local_root

    def cache(self, name: str) -> Path:
        """A folder on this machine's disk for files that can be made again, and for locks."""
        folder = self.local / "cache" / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def read_cache(self) -> AbstractContextManager[None]:
        """A block that reads the state of many months and changes few (`storage.read_cache`)."""
        # Not `cache`: a data root that is read-only has no such folder.
        return read_cache(self.local / "cache" / "facts")


@dataclass(frozen=True, slots=True, kw_only=True)
class MonthPart:
    """Rows of a month that are computed together.

    columns: the values by which its rows are recognised; None where the part is built in every run
    of the stage. reads: tables of the same month that it reads, each with the name of the part
    read, or None for all of it. settings, version, inputs: as those of a stage, for this part
    alone.
    """

    name: str
    columns: Mapping[str, str | None] | None
    build: Callable[[Job], Iterable[Row]]
    reads: tuple[tuple[Table, str | None], ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    version: int = 1
    inputs: Mapping[str, str] = field(default_factory=dict)


FAILED_REQUESTS = "failed_requests"
"""Name of the note that counts requests to a language model without an answer, by kind of
failure. Such a month or part is incomplete.
"""

STATES = "states"
"""Name of the note that counts a writer's texts that failed, and sections that are written, cut
or have a named fault.
"""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Whether a check passed, the figures that decided, and a sentence if there is one to say."""

    passed: bool
    facts: Mapping[str, Any]
    description: str = ""


@dataclass(frozen=True, slots=True)
class MonthCheck:
    """One statement about a month of a stage, which `evaluate` decides: its name and its docstring
    are those of the check.

    blocking: nothing below the stage runs for a month that fails it. warning: a failure is
    reported, and is no failure of the run. uses_pool: it needs what the stage's pool stands for.
    """

    evaluate: Callable[[Workspace, str], CheckResult]
    blocking: bool = False
    warning: bool = False
    uses_pool: bool = False

    @property
    def name(self) -> str:
        return self.evaluate.__name__

    @property
    def description(self) -> str:
        """The first paragraph of the docstring, on one line."""
        return next(iter(_paragraphs(self.evaluate)), "")

    def message(self, result: CheckResult) -> str:
        """A failed result in one line."""
        facts = ", ".join(f"{name} {value}" for name, value in result.facts.items())
        return result.description or f"its check {self.name} failed: {facts}"


class Stage:
    """One table and how a month of it is built: a subclass for each table, with one instance.

    The docstring of a subclass is the description of its asset in the Dagster UI.
    """

    table: Table
    upstream: tuple[Table, ...] = ()
    """Tables whose same month it reads."""
    after: tuple[Table, ...] = ()
    """Tables whose stages go before it, though it reads no row of theirs."""
    earlier: tuple[Table, ...] = ()
    """Tables whose earlier months it reads too."""
    settings: tuple[str, ...] = ()
    """Names of the settings that change its rows."""
    former_settings: Mapping[str, Any] = MappingProxyType({})
    """Settings that were removed, with the value that all rows have now, so that months which were
    made under it stay up to date.
    """
    version = 1
    """Raised when the code gives other rows for the same input."""
    pool: str | None = None
    """What only one process may use at a time; in Dagster a pool, between processes a file lock
    (`engine.locks`).
    """
    checks: tuple[MonthCheck, ...] = ()
    """Of its finished month, in the order in which they are evaluated."""
    plain_name = ""
    """What commands and messages call it; empty for its table's name."""
    kinds: tuple[str, ...] = ("parquet",)
    """Of its asset in the Dagster UI."""
    asks: Literal["writer", "judge"] | None = None
    """The language model that it calls."""

    def build(self, job: Job) -> Iterable[Row | pa.RecordBatch]:
        """The rows of a month, with a bounded number of them in memory."""
        raise NotImplementedError

    def inputs(self, workspace: Workspace, month: str) -> Mapping[str, str]:
        """Digests of everything else that it reads (zips, other months, prompts), by name."""
        return {}

    def lookups_hold(self, workspace: Workspace, month: str, written: Provenance) -> bool:
        """Whether what the build looked up in other months, `Job.looked_up`, would come out the
        same.
        """
        return True

    def outputs_exist(self, workspace: Workspace, month: str, written: Provenance) -> bool:
        """Whether what it made outside its table (points in the index, a page) is still there."""
        return True

    def finish(self, workspace: Workspace) -> None:
        """Work over all months, once at the end of a command that computed any month of the stage
        (`engine.finish`). A second call changes nothing.
        """

    def disabled_reason(self, settings: Settings) -> str:
        """Why the settings do not ask for the stage; empty where they do. A disabled month has a
        file without rows.
        """
        return ""

    def part_settings(self, settings: Settings) -> Mapping[str, Any]:
        """The settings of all parts, from which Dagster tells that a month is out of date."""
        return {}

    def setting_values(self, settings: Settings) -> dict[str, Any]:
        """The settings that change its rows, present and former, by name."""
        values = {name: getattr(settings, name) for name in self.settings}
        return {**values, **self.former_settings}

    @property
    def name(self) -> str:
        return self.table.name

    @property
    def description(self) -> str:
        """Of its asset in the Dagster UI, one line a paragraph."""
        return "\n\n".join(_paragraphs(type(self)))

    @property
    def finishes(self) -> bool:
        """Whether there is work over all months."""
        return type(self).finish is not Stage.finish

    @property
    def waits_for(self) -> set[str]:
        """The names of the stages without whose month its own is not run."""
        return {table.name for table in (*self.upstream, *self.after)}


def _paragraphs(documented: object) -> list[str]:
    """The paragraphs of a docstring, each on one line."""
    return list(map(one_line, (documented.__doc__ or "").split("\n\n")))


@dataclass(slots=True)
class Job:
    """One stage at work on one month: `build` reads from it, and reports to it."""

    workspace: Workspace
    month: str
    stage: Stage
    force: bool = False
    """Ignore earlier results."""
    rehearsal: bool = False
    """Only count what would be asked of language models: answers are invented, and the rows are
    thrown away.
    """
    ledger: list[Row] = field(default_factory=list)
    notes: dict[str, Any] = field(default_factory=dict)
    """Facts of the month that depend on its inputs alone; written into the file's metadata."""
    looked_up: dict[str, str] = field(default_factory=dict)
    """Digests of what the build looked up in other months, for `Stage.lookups_hold`; recorded with
    the file's inputs.
    """
    measured: dict[str, Any] = field(default_factory=dict)
    """Facts of this run alone (cache hits, bytes read); displayed, never written into the file."""
    expected: int | None = None
    """How many rows, or other things that `advance` counts, the month has; None where that is not
    known.
    """
    afterwards: list[Callable[[], None]] = field(default_factory=list)
    """Called once the month is in place, for example to remove what only an interrupted run would
    need.
    """

    @property
    def settings(self) -> Settings:
        return self.workspace.settings

    def rows(self, table: Table, columns: list[str] | None = None) -> list[dict[str, Any]]:
        """All rows of an upstream table's month."""
        return self.workspace.root.rows(table, self.month, columns)

    def iterate(self, table: Table, columns: list[str] | None = None) -> Iterator[dict[str, Any]]:
        """The rows of an upstream table's month one by one, in bounded memory."""
        return self.workspace.root.iterate(table, self.month, columns)

    def batches(self, table: Table, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows of an upstream table's month as Arrow batches, at most one row group each."""
        return self.workspace.root.batches(table, self.month, columns)

    def expect(self, total: int) -> None:
        """Declare how much there is to do, from which the display estimates the time left."""
        self.expected = total

    def advance(self, done: int) -> None:
        """Report how much is done, in the unit of `expect`."""
        publish(StageAdvanced(self.stage.name, self.month, done, self.expected))

    def measure(self, numbers: Mapping[str, float]) -> None:
        """Add these numbers to those of the same names in `measured`."""
        for name, number in numbers.items():
            self.measured[name] = self.measured.get(name, 0) + number

    def leave_out(self, subject: str, reason: str, detail: str = "") -> None:
        """Record in the ledger one thing that does not go on, with its reason."""
        self.ledger.append(
            {"subject": subject, "stage": self.stage.name, "reason": reason, "detail": detail}
        )
