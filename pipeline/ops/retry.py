"""Running again what failed, and how far each month's run was to go."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from pipeline.engine.failures import Failure, asked, kept_failures
from pipeline.engine.stage import Stage, Workspace
from pipeline.errors import SettingError
from pipeline.ops.run_months import RunReport, months_of_status, run_months
from pipeline.stages import STAGES
from pipeline.wikipedia.root import held_snapshot

Plan = list[tuple[list[str], list[Stage]]]


def failures_of(workspace: Workspace, selection: str) -> list[Failure]:
    """The failures that are kept of some months. Raises SettingError where the selection names no month there is."""
    if held_snapshot(workspace.root):
        raise SettingError(
            f"CITELOOM_DATA: {workspace.root.path} holds Wikipedia: run the same citeloom import-wikipedia again"
        )
    found = kept_failures(workspace.root)
    if selection.strip() == "all":
        return found
    months = set(months_of_status(workspace, selection)[0])
    return [failure for failure in found if failure.month in months]


def plan_of(workspace: Workspace, failures: Sequence[Failure]) -> Plan:
    """Which stages to run on which months: as far as the run went that failed, months with the same stages together.

    What the page of Dagster's UI started leaves no word of that: then the failed stages, and of those below them such
    as other months have, so that nothing is begun that nobody asked for.
    """
    months = sorted({failure.month for failure in failures})
    wanted = [
        (month, _stages_of(workspace, month, {each.of for each in failures if each.month == month})) for month in months
    ]
    wanted.sort(key=lambda pair: [STAGES.index(stage) for stage in pair[1]])
    grouped = groupby(wanted, key=lambda pair: pair[1])
    return [(sorted(month for month, _ in pairs), stages) for stages, pairs in grouped]


def _stages_of(workspace: Workspace, month: str, failed: set[str]) -> list[Stage]:
    wanted = set(asked(workspace.root, month))
    if wanted:
        return [stage for stage in STAGES if stage.name in wanted | failed]
    below = set(failed)
    whole = not failed & {stage.name for stage in STAGES}  # the run as such failed, in no stage that is known
    chosen = []
    for stage in STAGES:
        if whole or below & {table.name for table in stage.upstream}:
            below.add(stage.name)
        if stage.name in failed or (stage.name in below and workspace.root.months(stage.table)):
            chosen.append(stage)
    return chosen


def retry(workspace: Workspace, plan: Plan) -> RunReport:
    """Run a plan's months again; what came of it."""
    report = RunReport()
    for months, stages in plan:
        done = run_months(workspace, months, stages)
        report.outcomes += done.outcomes
        report.failures += [failure for failure in done.failures if failure not in report.failures]
        report.exit_code = max(report.exit_code, done.exit_code)
    return report
