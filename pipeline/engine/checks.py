"""Checks of a finished month: plain functions that both doors call after the stage they belong
to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.engine.failures import check_name, forget_failure, record_failure
from pipeline.engine.locks import pool_lock
from pipeline.engine.progress import Event, Notice, StageFailed, publish
from pipeline.engine.stage import Stage, Workspace
from pipeline.errors import PermanentFailure


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Whether a check passed, the figures that decided, and a sentence where there is something to
    say.
    """

    passed: bool
    facts: Mapping[str, Any]
    description: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """One statement about a month of a stage.

    evaluate: (workspace, month) → result. blocking: nothing below the stage runs for a month that
    fails it. warning: a failure is reported, and is no failure of the run. uses_pool: it needs what
    the stage's pool stands for.
    """

    stage: str
    name: str
    description: str
    evaluate: Callable[[Workspace, str], CheckResult]
    blocking: bool = False
    warning: bool = False
    uses_pool: bool = False

    def message(self, result: CheckResult) -> str:
        """A failed result in one line."""
        facts = ", ".join(f"{name} {value}" for name, value in result.facts.items())
        return result.description or f"its check {self.name} failed: {facts}"


@dataclass(frozen=True, slots=True)
class CheckEvaluated(Event):
    """A check of a finished month was evaluated."""

    check: Check
    month: str
    result: CheckResult


def evaluate(check: Check, stage: Stage, workspace: Workspace, month: str) -> CheckResult:
    """Evaluate one check of a stage's month."""
    with pool_lock(workspace, stage.pool if check.uses_pool else None):
        return check.evaluate(workspace, month)


def record(check: Check, workspace: Workspace, month: str, result: CheckResult) -> None:
    """Record a blocking check that failed, so that no later run goes on below it; forget it once it
    passes.
    """
    name = check_name(check.stage)
    if not check.blocking:
        return
    if result.passed:
        forget_failure(workspace, name, month)
    else:
        record_failure(workspace, name, month, PermanentFailure(check.message(result)))


def run_checks(checks: Sequence[Check], stage: Stage, workspace: Workspace, month: str) -> bool:
    """Evaluate the checks of a stage's month and report each; whether no blocking one failed."""
    passed = True
    of_stage = [check for check in checks if check.stage == stage.name]
    for check in of_stage:
        result = evaluate(check, stage, workspace, month)
        record(check, workspace, month, result)
        publish(CheckEvaluated(check, month, result))
        if not result.passed and check.warning:
            publish(Notice(f"{stage.name} of {month}: {check.message(result)}"))
        elif not result.passed:
            publish(StageFailed(stage.name, month, check.message(result)))
            passed = passed and not check.blocking
    if of_stage and passed:  # an earlier run may have recorded one that could not be evaluated
        forget_failure(workspace, check_name(stage.name), month)
    return passed
