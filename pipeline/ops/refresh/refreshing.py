"""A refresh from end to end, in this process: what `citeloom refresh` does. The schedule does the same by runs of
Dagster (`sensors.refresh`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipeline.engine import progress
from pipeline.engine.stage import Stage, Workspace, forget_failure
from pipeline.errors import CiteloomError
from pipeline.evaluation.publish import write_overall_index
from pipeline.index import close_indexes
from pipeline.llm.budget import is_budget_reached
from pipeline.metadata.harvest import HarvestReport
from pipeline.ops.preflight import check, check_data_root
from pipeline.ops.refresh.compare import Counts
from pipeline.ops.refresh.page import changes_folder
from pipeline.ops.refresh.plan import PREPARING, downstream, due_months, find_changes, stale_of
from pipeline.ops.refresh.stages import CHANGES, is_stale, is_whole, take_baseline
from pipeline.ops.run_months import RunReport, dagster_home, known_months, run_months, tell_of_broken_zips
from pipeline.stages import LLM_STAGES, STAGES
from pipeline.storage.provenance import read_provenance
from pipeline.storage.store import DataPath
from pipeline.wikipedia.root import refuse_arxiv


@dataclass(frozen=True, slots=True)
class MonthRefreshed:
    """What a refresh did to a month. made: stages that were computed; changes: None where no comparison could be made,
    since a stage up to the index failed."""

    month: str
    made: tuple[str, ...]
    changes: Counts | None


@dataclass(slots=True)
class RefreshReport:
    """What came of a refresh.

    out_of_date: month → table of a language model that no longer matches its inputs → its rows. not_made: month →
    tables of a language model that the settings ask for and that were never made. over_budget: (stage, month) that the
    budget ended; they are among those two, and the next refresh goes on there.
    """

    harvest: HarvestReport | None = None
    harvest_failure: str = ""
    months: list[MonthRefreshed] = field(default_factory=list)
    out_of_date: dict[str, dict[str, int]] = field(default_factory=dict)
    not_made: dict[str, list[str]] = field(default_factory=dict)
    over_budget: list[tuple[str, str]] = field(default_factory=list)
    failures: list[tuple[str, str, str]] = field(default_factory=list)
    page: DataPath | None = None
    exit_code: int = 0


def refresh(workspace: Workspace, selection: str, *, ask_arxiv: bool, redo: bool) -> RefreshReport:
    """Harvest, run the months that are due, and tell what changed. A second one with nothing new runs nothing.

    selection: months as `citeloom run` takes them. ask_arxiv: whether to harvest. redo: whether what asks a language
    model is made again where it is out of date, within the budget of the settings. Settings must be in the environment,
    from which runs read them. Raises SettingError for settings or months that cannot do.
    """
    check_data_root(workspace)
    refuse_arxiv(workspace)
    months = known_months(workspace, selection)
    found = find_changes(workspace, months, ask_arxiv=ask_arxiv)
    report = RefreshReport(found.harvest, found.harvest_failure, exit_code=int(bool(found.harvest_failure)))
    work = _Work(workspace, months)
    try:
        work.prepare(found.months)
        work.go_below(redo=redo)
    finally:
        close_indexes()  # asking how months stand has opened it
    work.tell(report)
    return report


@dataclass(slots=True)
class _Work:
    """The runs of a refresh, and what came of them."""

    workspace: Workspace
    months: Sequence[str]
    ran: RunReport = field(default_factory=RunReport)
    left: dict[str, Sequence[Stage]] = field(default_factory=dict)
    changes: dict[str, Counts | None] = field(default_factory=dict)

    def prepare(self, due: Sequence[str]) -> None:
        """Bring months up to tasks and questions, oldest first; then those whose references an earlier one's metadata
        has put out of date. Months read earlier ones alone, so there is an end."""
        done: set[str] = set()
        if not due:
            with progress.listening(self.ran):
                tell_of_broken_zips(self.workspace, PREPARING)
        while due:
            check(self.workspace, PREPARING)
            take_baseline(self.workspace, due)
            self._run(due, PREPARING)
            done.update(due)
            due = [month for month in due_months(self.workspace, self.months) if month not in done]

    def go_below(self, *, redo: bool) -> None:
        """Run what lies below, of months that came so far, and note what is left."""
        for month in self.months:
            chosen = downstream(self.workspace, month, redo=redo)
            if chosen.run and month not in self._failed():
                check(self.workspace, chosen.run)
                self._run([month], chosen.run)
            if chosen.run or redo:
                chosen = downstream(self.workspace, month, redo=False)
            self.left[month] = chosen.left

    def _run(self, months: Sequence[str], stages: Sequence[Stage]) -> None:
        came = run_months(self.workspace, months, stages)
        self.ran.outcomes += came.outcomes
        self.ran.failures += came.failures

    def _failed(self) -> set[str]:
        return {month for _, month, _ in self.ran.failures}

    def tell(self, report: RefreshReport) -> None:
        """Compare the months, write the pages, and fill in the report."""
        self._tell_failures(report)
        touched = {outcome.month for outcome in self.ran.outcomes if not outcome.kept}
        told = [month for month in self.months if self._is_to_be_told(month, touched)]
        for month in told:
            self._compare(month, report)
        if told:
            write_overall_index(self.workspace)
        report.months = [self._month(month) for month in self.months if month in touched or month in self.changes]
        self._tell_left(report)
        page = changes_folder(self.workspace.root) / "index.html"
        report.page = page if page.is_file() else None

    def _tell_failures(self, report: RefreshReport) -> None:
        asking = {stage.name for stage in LLM_STAGES}
        for stage, month, message in self.ran.failures:
            if stage in asking and is_budget_reached(message):
                # As planned: what was answered is kept, and the month is told of as out of date, not as failed.
                forget_failure(self.workspace, stage, month)
                report.over_budget.append((stage, month))
            else:
                report.failures.append((stage, month, message))
                report.exit_code = 1

    def _is_to_be_told(self, month: str, touched: Collection[str]) -> bool:
        """Whether a month is other than it was told of, by this refresh or by runs since the last one."""
        return month in touched or is_stale(self.workspace, month, stale_of(self.workspace, month, self.left[month]))

    def _compare(self, month: str, report: RefreshReport) -> None:
        """As a run of Dagster, whose page then shows what changed. A month that is not whole is told of once it is."""
        from pipeline.definitions import run_in_process

        if not is_whole(self.workspace, month):
            self.changes[month] = None
            return
        before, heard = self._notes(month).get("refreshed_at"), RunReport()
        with progress.listening(heard):
            came = run_in_process([CHANGES], month, dagster_home(self.workspace))
        forget_failure(self.workspace, CHANGES.name, month)
        if came.succeeded:
            after = self._notes(month)
            if after["refreshed_at"] != before:
                self.changes[month] = Counts(**{name: after[name] for name in Counts.__slots__})
        else:
            self.changes[month] = None
            report.failures += heard.failures or [(CHANGES.name, month, "its page in citeloom ui says why")]
            report.exit_code = 1

    def _notes(self, month: str) -> Mapping[str, Any]:
        try:
            written = read_provenance(self.workspace.root.file(CHANGES.table, month))
        except CiteloomError:  # it is damaged, and made anew
            return {}
        return written.notes if written else {}

    def _month(self, month: str) -> MonthRefreshed:
        made = {outcome.stage for outcome in self.ran.outcomes if outcome.month == month and not outcome.kept}
        in_order = tuple(stage.name for stage in STAGES if stage.name in made)
        return MonthRefreshed(month, in_order, self.changes.get(month, Counts()))

    def _tell_left(self, report: RefreshReport) -> None:
        for month, left in self.left.items():
            stale = stale_of(self.workspace, month, left)
            missing = [stage.name for stage in left if stage in LLM_STAGES and stage.name not in stale]
            report.out_of_date |= {month: stale} if stale else {}
            report.not_made |= {month: missing} if missing else {}
