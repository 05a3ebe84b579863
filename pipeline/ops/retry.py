"""Run failed months again, as far as their runs were to go: what `citeloom retry-failed` does."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from pipeline.engine.failures import Failure, all_failures, read_run_stages
from pipeline.engine.stage import Stage, Workspace
from pipeline.errors import SettingError
from pipeline.ops.run_months import months_of_status
from pipeline.stages import STAGES
from pipeline.wikipedia.root import held_snapshot

Plan = list[tuple[list[str], list[Stage]]]
"""Months, and the stages to run on them."""


def failures_of(workspace: Workspace, selection: str) -> list[Failure]:
    """The recorded failures of some months. Raises SettingError where the selection names no month there is."""
    if held_snapshot(workspace.root):
        raise SettingError(
            f"CITELOOM_DATA: {workspace.root.path} holds Wikipedia: run the same citeloom import-wikipedia again"
        )
    failures = all_failures(workspace.root)
    if selection.strip() == "all":
        return failures
    months = set(months_of_status(workspace, selection)[0])
    return [failure for failure in failures if failure.month in months]


def plan_of(workspace: Workspace, failures: Sequence[Failure]) -> Plan:
    """The stages to run on each failed month, months with the same stages together.

    A failed run of the command line has recorded how far it was to go. A run of the Dagster page has not: then the
    failed stages, and of those below them the ones that other months have, so that nothing new is begun.
    """
    failed_stages: dict[str, set[str]] = {}
    for failure in failures:
        failed_stages.setdefault(failure.month, set()).add(failure.of)
    pairs = [(month, _stages_to_run(workspace, month, failed)) for month, failed in sorted(failed_stages.items())]
    pairs.sort(key=lambda pair: [STAGES.index(stage) for stage in pair[1]])
    return [([month for month, _ in group], stages) for stages, group in groupby(pairs, key=lambda pair: pair[1])]


def _stages_to_run(workspace: Workspace, month: str, failed: set[str]) -> list[Stage]:
    recorded = set(read_run_stages(workspace.root, month))
    if recorded:
        return [stage for stage in STAGES if stage.name in recorded | failed]
    below = set(failed)
    no_stage_known = not failed & {stage.name for stage in STAGES}  # the run as such failed
    stages = []
    for stage in STAGES:
        if no_stage_known or below & {table.name for table in stage.upstream}:
            below.add(stage.name)
        if stage.name in failed or (stage.name in below and workspace.root.months(stage.table)):
            stages.append(stage)
    return stages
