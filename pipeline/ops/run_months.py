"""Run stages over months in this process: the loop behind `citeloom run`, `demo` and `refresh`, and
that of `run --part`, which shares the months with other processes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path

from pipeline.corpus.dump.catalogue import broken_zips, months_in_dump, read_dump
from pipeline.engine import shutdown
from pipeline.engine.checks import run_checks
from pipeline.engine.failures import (
    RUN,
    Failure,
    all_failures,
    check_name,
    forget_failure,
    record_failure,
)
from pipeline.engine.finish import finish_stages
from pipeline.engine.locks import LEASE_SECONDS, month_lease
from pipeline.engine.priority import lower_priority
from pipeline.engine.progress import (
    Event,
    Notice,
    Outcome,
    RunPlanned,
    StageFailed,
    StageFinished,
    listening,
    publish,
)
from pipeline.engine.run import outcome_of, run_stage
from pipeline.engine.stage import Stage, Workspace
from pipeline.engine.status import stages_due
from pipeline.errors import CiteloomError, MissingInput, SettingError, exit_code_of
from pipeline.identity.months import select_months
from pipeline.stage_names import plain_name
from pipeline.stages import CORPUS_STAGES, STAGES, lookup_stage
from pipeline.tables import DUMP_MEMBERS, INDEX_RECEIPTS, Table
from pipeline.text import number_of


@dataclass(slots=True)
class RunReport:
    """The outcomes of a run, and its failures as (stage, month, message)."""

    outcomes: list[Outcome] = field(default_factory=list)
    failures: list[tuple[str, str, str]] = field(default_factory=list)
    exit_code: int = 0

    def record(self, event: Event) -> None:
        """Add the outcome or the failure that an event reports."""
        match event:
            case StageFinished(outcome):
                self.outcomes.append(outcome)
            case StageFailed(stage, month, message, exit_code):
                self.failures.append((stage, month, message))
                self.exit_code = max(self.exit_code, exit_code)

    def add(self, other: RunReport) -> None:
        """Add another run's report; a failure that both report, such as a broken zip, once."""
        self.outcomes += other.outcomes
        self.failures += [failure for failure in other.failures if failure not in self.failures]
        self.exit_code = max(self.exit_code, other.exit_code)


def run_months(
    workspace: Workspace,
    months: Sequence[str],
    stages: Sequence[Stage],
    *,
    force: bool = False,
    completes: bool = False,
    finish: bool = True,
) -> RunReport:
    """Run what the months need, oldest first; a month that fails leaves the others to go on.

    All months go through the stages that ask no language model before any goes through the others,
    so that the corpus can be searched as early as possible. The process gets a lower priority, so
    that Dagster's pages and `citeloom serve` answer beside it. completes: as for `stages_due`.
    finish: whether stages are finished after the last month (`engine.finish`), with no months those
    that earlier calls left. Raises KeyboardInterrupt after SIGINT or SIGTERM (see
    `engine.shutdown`).
    """
    failed: dict[str, set[str]] = {month: set() for month in months}
    with _reported_run(workspace, months, stages) as report:
        corpus = {stage.name for stage in CORPUS_STAGES}
        for is_corpus in (True, False):
            phase = [stage for stage in stages if (stage.name in corpus) is is_corpus]
            _run_phase(workspace, phase, months, failed, force=force, completes=completes)
            if finish:
                _finish(workspace, phase)
        for month in months:
            if not failed[month]:
                forget_failure(workspace, RUN, month)
    return report


@contextmanager
def _reported_run(
    workspace: Workspace, months: Sequence[str], stages: Sequence[Stage]
) -> Iterator[RunReport]:
    """The report of a run, to which the block adds. Begins with the zips that cannot be read.

    Raises KeyboardInterrupt at the end where this process was asked to end.
    """
    lower_priority()
    report = RunReport()
    publish(RunPlanned(months, [stage.name for stage in stages]))
    with listening(report.record), shutdown.draining():
        if DUMP_MEMBERS in {stage.table for stage in stages}:
            report_broken_zips(workspace)
        yield report
    if shutdown.requested():
        raise KeyboardInterrupt


def divide_months(workspace: Workspace, months: Iterable[str], parts: int) -> list[list[str]]:
    """Divide months into parts with about as many bytes of the dump each.

    Each part is oldest first; the same in every process that reads the same dump. Raises as
    `read_dump` does.
    """
    with workspace.read_cache():
        dump = read_dump(workspace.settings)
        sizes = {month: dump.count_bytes(month) for month in sorted(months)}
    divided: list[list[str]] = [[] for _ in range(parts)]
    filled = [0] * parts
    for month in sorted(sizes, key=lambda month: -sizes[month]):
        emptiest = min(range(parts), key=lambda part: (filled[part], len(divided[part])))
        divided[emptiest].append(month)
        filled[emptiest] += sizes[month]
    return list(map(sorted, divided))


def run_part(
    workspace: Workspace,
    months: Sequence[str],
    stages: Sequence[Stage],
    part: tuple[int, int],
    *,
    lease_seconds: float = LEASE_SECONDS,
) -> RunReport:
    """Run one part of the months beside processes that run the others, on any number of machines.

    part: its number, from 1, and how many there are. A month is held by a lease (`engine.locks`).
    Once its own months are done, the process runs what is due of all months that nobody holds, such
    as those of a machine that is gone; not those that failed. References, and what is below them,
    wait until every month has its metadata. What is left at the end, a notice says. Raises
    KeyboardInterrupt as `run_months` does.
    """
    shared = _SharedRun(workspace, months, stages, lease_seconds)
    own = divide_months(workspace, months, part[1])[part[0] - 1]
    # From the other end than those whose part it is.
    others = sorted(set(months).difference(own), reverse=True)
    with _reported_run(workspace, own, stages) as report:
        for month in own:
            shared.run(month)
        # The last of the processes to finish a month sees what all of them have left.
        while any(shared.run(month) for month in shared.due([*own, *others])):
            pass
        shared.report_left()
    return report


class _SharedRun:
    """Months that several processes run, each a month at a time."""

    def __init__(
        self,
        workspace: Workspace,
        months: Sequence[str],
        stages: Sequence[Stage],
        lease_seconds: float,
    ) -> None:
        self._workspace, self._months, self._stages = workspace, months, stages
        self._lease_seconds = lease_seconds
        self._held_elsewhere: dict[str, str] = {}
        self._stages_tried: dict[str, int] = {}
        self._incomplete: dict[str, list[str]] = {}

    def run(self, month: str) -> bool:
        """Run what a month needs; False where another process holds it."""
        if shutdown.requested():
            raise KeyboardInterrupt
        with month_lease(self._workspace, month, self._lease_seconds) as other:
            self._held_elsewhere[month] = other
            if other:
                return False
            failed: dict[str, set[str]] = {month: set()}
            ready = self._ready_stages()
            self._stages_tried[month] = len(ready)
            _run_phase(self._workspace, ready, [month], failed, force=False, completes=True)
            if not failed[month]:
                forget_failure(self._workspace, RUN, month)
        return True

    def due(self, months: Iterable[str]) -> list[str]:
        """The months that need a stage that can be run now, have no failure, and have not been run
        through these stages by this process.
        """
        recorded = {failure.month for failure in all_failures(self._workspace.root)}
        ready = self._ready_stages()
        tried = self._stages_tried
        candidates = [
            month for month in months if month not in recorded and tried.get(month, 0) < len(ready)
        ]
        return self._due(ready, candidates)

    def report_left(self) -> None:
        """Say what of the months is still to be done, and why this process has not done it."""
        for month in self._due(self._ready_stages(), self._months):
            if holder := self._held_elsewhere.get(month):
                publish(Notice(holder))
        waiting = [stage for stage in self._stages if stage not in self._ready_stages()]
        if waiting and self._due(waiting, self._months):
            names = ", ".join(plain_name(stage.name) for stage in waiting)
            publish(
                Notice(f"{names} wait for the metadata of all months: run again once it is there")
            )

    def _due(self, stages: Sequence[Stage], months: Sequence[str]) -> list[str]:
        failed: dict[str, set[str]] = {month: set() for month in months}
        due = _stages_due(self._workspace, stages, months, failed, force=False, completes=True)
        return [month for month in due if due[month]]

    def _ready_stages(self) -> list[Stage]:
        """The stages without those that read earlier months of a table which a month still lacks,
        and without those below them.
        """
        waiting: set[str] = set()
        for stage in STAGES:
            if stage.waits_for & waiting or not all(map(self._is_complete, stage.earlier)):
                waiting.add(stage.name)
        return [stage for stage in self._stages if stage.name not in waiting]

    def _is_complete(self, table: Table) -> bool:
        """Whether every month of a table is up to date, or was before in this run."""
        left = self._incomplete.setdefault(table.name, [*self._months])
        while left and not self._due([lookup_stage(table.name)], left[-1:]):
            left.pop()
        return not left


def _finish(workspace: Workspace, stages: Sequence[Stage]) -> None:
    """Finish the stages that are due, unless this process was asked to end."""
    if shutdown.requested():
        raise KeyboardInterrupt
    try:
        finish_stages(workspace, stages)
    except shutdown.Interrupted as error:
        raise KeyboardInterrupt from error


def report_broken_zips(workspace: Workspace) -> None:
    """Report each unusable zip as a failure, since its pages are missing."""
    for message in broken_zips(workspace.settings):
        publish(StageFailed("dump", "all months", message))


def _run_phase(
    workspace: Workspace,
    stages: Sequence[Stage],
    months: Sequence[str],
    failed: dict[str, set[str]],
    *,
    force: bool,
    completes: bool,
) -> None:
    """Run what the months need of some stages. failed: stages of each month that failed or are
    below one that did.
    """
    # The status of all months is read first, so that a run with nothing to do looks at each file
    # and opens the in-process index once.
    with workspace.read_cache():
        due = _stages_due(workspace, stages, months, failed, force=force, completes=completes)
        for month in list(takewhile(lambda month: not due[month], due)):
            _report_skipped(workspace, stages, month)
            del due[month]
    computed = False
    for month in list(due):
        if computed:  # a month may read earlier ones
            del due[month]
            due |= _stages_due(workspace, stages, [month], failed, force=force, completes=completes)
        if month not in due:
            continue
        _report_skipped(workspace, [stage for stage in stages if stage not in due[month]], month)
        computed = computed or bool(due[month])
        for stage in due[month]:
            if shutdown.requested():
                raise KeyboardInterrupt
            below = failed[month] & stage.waits_for
            if below or not _run_and_check(workspace, stage, month, force=force):
                failed[month].add(stage.name)


def _stages_due(
    workspace: Workspace,
    stages: Sequence[Stage],
    months: Sequence[str],
    failed: dict[str, set[str]],
    *,
    force: bool,
    completes: bool,
) -> dict[str, list[Stage]]:
    """The stages due by month; a month whose status cannot be read fails alone."""
    due = {}
    with workspace.read_cache():
        for month in months:
            try:
                due[month] = stages_due(stages, workspace, month, force=force, completes=completes)
            except CiteloomError as error:  # such as a store that does not answer
                failed[month].update(stage.name for stage in stages)
                message = record_failure(workspace, RUN, month, error)
                publish(StageFailed(RUN, month, message, exit_code_of(error)))
    return due


def _report_skipped(workspace: Workspace, stages: Sequence[Stage], month: str) -> None:
    """Report stages that are up to date, and forget their failures."""
    with workspace.read_cache():
        for stage in stages:
            provenance = workspace.root.provenance(stage.table, month)
            if provenance is not None:
                forget_failure(workspace, stage.name, month)
                publish(StageFinished(outcome_of(workspace, provenance, skipped=True)))


def _run_and_check(workspace: Workspace, stage: Stage, month: str, *, force: bool) -> bool:
    """Run a stage and the checks that belong to it; whether the stages below it may run."""
    try:
        run_stage(stage, workspace, month, force=force)
    except shutdown.Interrupted as error:
        raise KeyboardInterrupt from error
    except Exception:  # `run_stage` has recorded and reported it; other stages and months go on
        return False
    try:
        return run_checks(stage, workspace, month)
    except Exception as error:  # the check cannot be evaluated, as where a server is down
        message = record_failure(workspace, check_name(stage.name), month, error)
        publish(StageFailed(stage.name, month, message))
        return False


def known_months(workspace: Workspace, selection: str) -> list[str]:
    """The months of the dump that a selection names; raises SettingError if there are none, which
    names the zips that cannot be used.
    """
    try:
        return select_months(selection, months_in_dump(workspace.settings))
    except SettingError as error:
        raise SettingError("\n".join([str(error), *broken_zips(workspace.settings)])) from error


def months_of_status(workspace: Workspace, selection: str) -> tuple[list[str], str | None]:
    """The selected months of dump and data root, and what is wrong with the dump, or None."""
    in_root = set(workspace.root.months(DUMP_MEMBERS))
    try:
        months = select_months(selection, in_root.union(months_in_dump(workspace.settings)))
        return months, "\n".join(broken_zips(workspace.settings)) or None
    except (MissingInput, SettingError) as error:
        if not in_root:
            raise
        return select_months(selection, in_root), str(error)


def loading_note(workspace: Workspace) -> str:
    """How many months can be searched, as while a load runs; empty where all can.

    All are those of the data root, and of the dump if it has these and is on this machine.
    """
    loaded = set(workspace.root.months(INDEX_RECEIPTS))
    months = set(workspace.root.months(DUMP_MEMBERS))
    if isinstance(workspace.settings.dump_dir, Path):
        with suppress(CiteloomError):  # the data root is searched without its dump, too
            in_dump = set(months_in_dump(workspace.settings))
            months = in_dump if months <= in_dump else months
    if months <= loaded:
        return ""
    return f"{len(months & loaded):,} of {number_of(len(months), 'month')} are loaded"


def failures_in(workspace: Workspace, selection: str) -> list[Failure]:
    """The recorded failures of the months that a selection names, by month and stage."""
    failures = all_failures(workspace.root)
    if selection == "all":
        return failures
    months, _ = months_of_status(workspace, selection)
    return [failure for failure in failures if failure.month in months]


def failed_stages(workspace: Workspace, failures: Sequence[Failure]) -> list[Stage]:
    """The stages that failed and those that any month has, for a rerun of failed months."""
    failed = {failure.stage_name for failure in failures}
    return [stage for stage in STAGES if stage.name in failed or workspace.root.months(stage.table)]
