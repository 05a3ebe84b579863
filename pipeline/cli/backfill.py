"""The command `citeloom retry-failed`: what failed, listed and run again."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.cli.options import AsJson, MonthsOption
from pipeline.cli.workspace import open_workspace

if TYPE_CHECKING:
    from pipeline.engine.stage import Workspace
    from pipeline.ops.retry import Plan
    from pipeline.ops.run_months import RunReport


def retry_failed(
    months: MonthsOption = "all",
    list_only: Annotated[bool, typer.Option("--list", help="Only list what failed, and run nothing.")] = False,
    as_json: AsJson = False,
) -> int:
    """Run again what failed, to the stage that its run was to reach, and list what a rerun cannot clear.

    Examples:
      citeloom retry-failed --list
      citeloom retry-failed --months 2024-03
    """
    from pipeline.cli.console import failures_table, out, print_json, run_table
    from pipeline.ops.retry import failures_of, plan_of

    workspace = open_workspace()
    failed = failures_of(workspace, months)
    told = {"failed": [asdict(failure) for failure in failed]}
    if not as_json:
        out.print(failures_table(failed) if failed else "Nothing that failed is kept.")
    if list_only or not failed:
        if as_json:
            print_json(told)
        return 0
    report = _retry(workspace, plan_of(workspace, failed))
    left = failures_of(workspace, months)
    if as_json:
        outcomes = [asdict(outcome) for outcome in report.outcomes]
        print_json({**told, "outcomes": outcomes, "still_failed": [asdict(failure) for failure in left]})
        return report.exit_code
    out.print(run_table(report.outcomes))
    out.print(failures_table(left, title="Failed still") if left else "All of it is done now.")
    return report.exit_code


def _retry(workspace: Workspace, plan: Plan) -> RunReport:
    from pipeline.cli.console import expected_seconds, showing
    from pipeline.ops.preflight import check
    from pipeline.ops.retry import retry

    for _, stages in plan:
        check(workspace, stages)
    expected: dict[tuple[str, str], float] = {}
    for months, stages in plan:
        expected |= expected_seconds(workspace.root, months, [stage.name for stage in stages])
    with showing(expected=expected):
        return retry(workspace, plan)
