"""The command `citeloom retry-failed`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from pipeline.cli.options import AsJson, MonthsOption
from pipeline.cli.workspace import open_workspace


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
    from pipeline.cli.run import run_and_report
    from pipeline.ops.retry import failures_of, plan_of

    workspace = open_workspace()
    failures = failures_of(workspace, months)
    document = {"failed": [asdict(failure) for failure in failures]}
    if not as_json:
        out.print(failures_table(failures) if failures else f"No failure is recorded in {workspace.root.path}.")
    if list_only or not failures:
        if as_json:
            print_json(document)
        return 0
    report = run_and_report(workspace, plan_of(workspace, failures))
    remaining = failures_of(workspace, months)
    if as_json:
        outcomes = [asdict(outcome) for outcome in report.outcomes]
        print_json({**document, "outcomes": outcomes, "still_failed": [asdict(failure) for failure in remaining]})
        return report.exit_code
    out.print(run_table(report.outcomes))
    out.print(failures_table(remaining, title="Still failed") if remaining else "Everything is done now.")
    return report.exit_code
