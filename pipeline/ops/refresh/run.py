"""A refresh from end to end in this process, for `citeloom refresh`.

The schedule does the same by runs of Dagster (`sensors.refresh`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.arxiv.harvest import HarvestReport
from pipeline.engine.progress import listening
from pipeline.engine.stage import Stage, Workspace
from pipeline.engine.status import stages_due
from pipeline.ops.preflight import check, check_data_root
from pipeline.ops.refresh.plan import (
    Downstream,
    corpus_stages_of,
    downstream,
    due_by_month,
    find_changes,
    stages_in_use,
)
from pipeline.ops.refresh.summary import RefreshSummary, record_keys, summarize, unfinished_refresh
from pipeline.ops.run_months import RunReport, known_months, report_broken_zips, run_months


@dataclass(frozen=True, slots=True)
class RefreshReport:
    """The harvest, None where none was made or it failed, and the summary of what was run."""

    harvest: HarvestReport | None
    harvest_failure: str
    summary: RefreshSummary

    @property
    def exit_code(self) -> int:
        """1 where the harvest or a month failed, else 0."""
        return int(bool(self.harvest_failure or self.summary.failures))


def refresh(
    workspace: Workspace, selection: str, *, ask_arxiv: bool, redo: bool, until: str | None = None
) -> RefreshReport:
    """Harvest, run the months that are due, and summarize what changed. A second one with nothing
    new runs nothing.

    selection: months as `citeloom run` takes them. ask_arxiv: whether to harvest. redo: whether to
    run stages that call a language model too, within the budget of the settings. until: the last
    stage; None for those that the corpus was run to. Raises SettingError for unsuitable settings or
    months.
    """
    check_data_root(workspace)
    months = known_months(workspace, selection)
    stages = stages_in_use(workspace, until)
    plan = find_changes(workspace, months, stages, ask_arxiv=ask_arxiv)
    report = _prepare(workspace, plan.months, months, stages)
    due = due_by_month(workspace, months, stages) if plan.months else plan.due
    deferred = _run_below(workspace, due, stages, report, redo=redo)
    summary = summarize(workspace, unfinished_refresh(workspace.root), deferred, report.failures)
    return RefreshReport(plan.harvest, plan.harvest_failure, summary)


def _prepare(
    workspace: Workspace, due: Sequence[str], months: Sequence[str], stages: Sequence[Stage]
) -> RunReport:
    """Run due months up to tasks and questions, oldest first; then those whose references are out
    of date since the metadata of an earlier month changed. This ends, since a month reads earlier
    ones only.
    """
    report, done = RunReport(), set[str]()
    stages = corpus_stages_of(stages)
    if not due:
        with listening(report.record):
            report_broken_zips(workspace)
    while due:
        check(workspace, stages)
        record_keys(workspace, due)
        report.add(run_months(workspace, due, stages))
        done.update(due)
        due = [
            month
            for month, still_due in due_by_month(workspace, months, stages).items()
            if still_due and month not in done
        ]
    return report


def _run_below(
    workspace: Workspace,
    due: Mapping[str, Sequence[Stage]],
    stages: Sequence[Stage],
    report: RunReport,
    *,
    redo: bool,
) -> dict[str, Sequence[Stage]]:
    """Run the later stages of prepared months; returns month → stages left out of date. due: month
    → the stages that are due.
    """
    deferred: dict[str, Sequence[Stage]] = {}
    with workspace.read_cache():
        planned = {
            month: downstream(workspace, month, due_stages, redo=redo)
            for month, due_stages in due.items()
        }
    computed = False
    for month, below in planned.items():
        if computed:  # a month may read earlier ones
            below = _downstream_now(workspace, month, stages, redo=redo)
        if below.run and month not in {failed for _, failed, _ in report.failures}:
            computed = True
            check(workspace, below.run)
            record_keys(workspace, [month])
            report.add(run_months(workspace, [month], below.run, finish=False))
        if below.run:
            below = _downstream_now(workspace, month, stages, redo=False)
        deferred[month] = below.deferred
    report.add(run_months(workspace, [], [stage for stage in stages if stage.finishes]))
    return deferred


def _downstream_now(
    workspace: Workspace, month: str, stages: Sequence[Stage], *, redo: bool
) -> Downstream:
    due = stages_due(stages, workspace, month)
    return downstream(workspace, month, due, redo=redo)
