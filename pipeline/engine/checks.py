"""Checks of a finished month, which the command line and Dagster evaluate after the stage."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.engine.failures import check_name, forget_failure, record_failure
from pipeline.engine.locks import pool_lock
from pipeline.engine.progress import Event, Notice, StageFailed, publish
from pipeline.engine.stage import CheckResult, MonthCheck, Stage, Workspace
from pipeline.errors import PermanentFailure
from pipeline.stage_names import plain_name


@dataclass(frozen=True, slots=True)
class CheckEvaluated(Event):
    """A check of a finished month was evaluated."""

    stage: str
    check: MonthCheck
    month: str
    result: CheckResult


def evaluate(stage: Stage, check: MonthCheck, workspace: Workspace, month: str) -> CheckResult:
    """Evaluate one check of a stage's month."""
    with pool_lock(workspace, stage.pool if check.uses_pool else None):
        return check.evaluate(workspace, month)


def record(
    stage: Stage, check: MonthCheck, workspace: Workspace, month: str, result: CheckResult
) -> None:
    """Record the failure of a blocking check, so that no run goes on below it; forget it where the
    check passes.
    """
    if not check.blocking:
        return
    name = check_name(stage.name)
    if result.passed:
        forget_failure(workspace, name, month)
    else:
        record_failure(workspace, name, month, PermanentFailure(check.message(result)))


def run_checks(stage: Stage, workspace: Workspace, month: str) -> bool:
    """Evaluate the checks of a stage's month and report each; whether no blocking one failed."""
    passed = True
    for check in stage.checks:
        result = evaluate(stage, check, workspace, month)
        record(stage, check, workspace, month, result)
        publish(CheckEvaluated(stage.name, check, month, result))
        if not result.passed and check.warning:
            publish(Notice(f"{plain_name(stage.name)} of {month}: {check.message(result)}"))
        elif not result.passed:
            publish(StageFailed(stage.name, month, check.message(result)))
            passed = passed and not check.blocking
    if stage.checks and passed:  # an earlier run may have recorded one that could not be evaluated
        forget_failure(workspace, check_name(stage.name), month)
    return passed
