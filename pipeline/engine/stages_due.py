"""Which stages a month still needs."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.engine.failures import CHECK
from pipeline.engine.stage import Stage, State, Workspace, read_failure, state


def pending(stages: Sequence[Stage], workspace: Workspace, month: str, *, force: bool = False) -> list[Stage]:
    """The stages that a month still needs: missing, out of date, below one that is, or whose check did not hold."""
    due: list[Stage] = []
    for stage in stages:
        above = {table.name for table in stage.upstream} & {other.name for other in due}
        unchecked = read_failure(workspace, check_of(stage), month) is not None
        if force or above or unchecked or state(stage, workspace, month) is not State.DONE:
            due.append(stage)
    return due


def check_of(stage: Stage) -> str:
    """The name under which it is kept that a check of a stage did not hold."""
    return f"{CHECK}{stage.name}"
