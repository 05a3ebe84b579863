"""A refresh from end to end in this process: what `citeloom refresh` does; the schedule does it by runs of Dagster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipeline.arxiv.harvest import HarvestReport
from pipeline.engine import progress
from pipeline.engine.failures import forget_failure
from pipeline.engine.run import run_stage
from pipeline.engine.stage import Stage, Workspace
from pipeline.errors import CiteloomError
from pipeline.index import close_indexes
from pipeline.llm.budget import is_budget_reached
from pipeline.ops.preflight import check, check_data_root
from pipeline.ops.refresh.compare import Counts
from pipeline.ops.refresh.page import changes_folder
from pipeline.ops.refresh.plan import downstream, due_months, find_changes, preparing, stages_in_use, stale_of
from pipeline.ops.refresh.stages import CHANGES, is_stale, is_whole, take_baseline
from pipeline.ops.run_months import RunReport, known_months, report_broken_zips, run_months
from pipeline.report.publish import write_overall_page
from pipeline.stages import LLM_STAGES, STAGES
from pipeline.storage.provenance import read_provenance
from pipeline.storage.store import DataPath


@dataclass(frozen=True, slots=True)
class MonthRefreshed:
    """What a refresh did to a month. made: stages that were computed. changes: None where no comparison could be made,
    because a stage up to the index failed or was never run."""

    month: str
    made: tuple[str, ...]
    changes: Counts | None


@dataclass(slots=True)
class RefreshReport:
    """The result of a refresh.

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


def refresh(
    workspace: Workspace, selection: str, *, ask_arxiv: bool, redo: bool, until: str | None = None
) -> RefreshReport:
    """Harvest, run the months that are due, and report what changed. A second one with nothing new runs nothing.

    selection: months as `citeloom run` takes them. ask_arxiv: whether to harvest. redo: whether what asks a language
    model is made again where it is out of date, within the budget of the settings. until: the last stage; None for
    those that the corpus was run to. Raises SettingError for unsuitable settings or months.
    """
    check_data_root(workspace)
    months = known_months(workspace, selection)
    stages = stages_in_use(workspace, until)
    changes = find_changes(workspace, months, stages, ask_arxiv=ask_arxiv)
    report = RefreshReport(changes.harvest, changes.harvest_failure, exit_code=int(bool(changes.harvest_failure)))
    refreshing = _Refresh(workspace, months, stages)
    try:
        refreshing.prepare(changes.months)
        refreshing.run_below(redo=redo)
    finally:
        close_indexes()  # asking for the status of months has opened it
    refreshing.fill(report)
    return report


@dataclass(slots=True)
class _Refresh:
    """The runs of a refresh, and what came of them."""

    workspace: Workspace
    months: Sequence[str]
    stages: Sequence[Stage]
    ran: RunReport = field(default_factory=RunReport)
    left: dict[str, Sequence[Stage]] = field(default_factory=dict)
    changes: dict[str, Counts | None] = field(default_factory=dict)

    def prepare(self, due: Sequence[str]) -> None:
        """Bring months up to tasks and questions, oldest first; then those whose references an earlier one's metadata
        has put out of date. Months read earlier ones alone, so there is an end."""
        done: set[str] = set()
        stages = preparing(self.stages)
        if not due:
            with progress.listening(self.ran):
                report_broken_zips(self.workspace)
        while due:
            check(self.workspace, stages)
            take_baseline(self.workspace, due)
            self.ran.add(run_months(self.workspace, due, stages))
            done.update(due)
            due = [month for month in due_months(self.workspace, self.months, stages) if month not in done]

    def run_below(self, *, redo: bool) -> None:
        """Run what lies below on months whose preparing stages are done, and note what is left."""
        for month in self.months:
            below = downstream(self.workspace, month, self.stages, redo=redo)
            if below.run and month not in {failed for _, failed, _ in self.ran.failures}:
                check(self.workspace, below.run)
                self.ran.add(run_months(self.workspace, [month], below.run))
            if below.run or redo:
                below = downstream(self.workspace, month, self.stages, redo=False)
            self.left[month] = below.left

    def fill(self, report: RefreshReport) -> None:
        """Compare the months, write the pages, and fill in the report."""
        self._fill_failures(report)
        computed = {outcome.month for outcome in self.ran.outcomes if not outcome.skipped}
        to_compare = [month for month in self.months if month in computed or self._is_stale(month)]
        for month in to_compare:
            self._compare(month, report)
        if to_compare:
            write_overall_page(self.workspace)
        report.months = [self._month(month) for month in self.months if month in computed or month in self.changes]
        self._fill_left(report)
        page = changes_folder(self.workspace.root) / "index.html"
        report.page = page if page.is_file() else None

    def _fill_failures(self, report: RefreshReport) -> None:
        asking = {stage.name for stage in LLM_STAGES}
        for stage, month, message in self.ran.failures:
            if stage in asking and is_budget_reached(message):
                # As planned: answers are saved, and the month is reported as out of date, not as failed.
                forget_failure(self.workspace, stage, month)
                report.over_budget.append((stage, month))
            else:
                report.failures.append((stage, month, message))
                report.exit_code = 1

    def _is_stale(self, month: str) -> bool:
        """Whether a month differs from how it was reported last, by runs since the last refresh."""
        return is_stale(self.workspace, month, stale_of(self.workspace, month, self.left[month]))

    def _compare(self, month: str, report: RefreshReport) -> None:
        """Compute the month of `changes`. A month that is not whole is compared once it is."""
        if not is_whole(self.workspace, month):
            self.changes[month] = None
            return
        before = self._notes(month).get("refreshed_at")
        try:
            run_stage(CHANGES, self.workspace, month)
        except CiteloomError as error:
            self.changes[month] = None
            report.failures.append((CHANGES.name, month, str(error)))
            report.exit_code = 1
            return
        after = self._notes(month)
        if after["refreshed_at"] != before:
            self.changes[month] = Counts(**{name: after[name] for name in Counts.__slots__})

    def _notes(self, month: str) -> Mapping[str, Any]:
        try:
            written = read_provenance(self.workspace.root.file(CHANGES.table, month))
        except CiteloomError:  # it is damaged, and made anew
            return {}
        return written.notes if written else {}

    def _month(self, month: str) -> MonthRefreshed:
        made = {outcome.stage for outcome in self.ran.outcomes if outcome.month == month and not outcome.skipped}
        in_order = tuple(stage.name for stage in STAGES if stage.name in made)
        return MonthRefreshed(month, in_order, self.changes.get(month, Counts()))

    def _fill_left(self, report: RefreshReport) -> None:
        for month, left in self.left.items():
            stale = stale_of(self.workspace, month, left)
            missing = [stage.name for stage in left if stage in LLM_STAGES and stage.name not in stale]
            report.out_of_date |= {month: stale} if stale else {}
            report.not_made |= {month: missing} if missing else {}
