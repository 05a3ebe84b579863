"""The command `citeloom retry-failed`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from pipeline.cli.options import AsJson, MonthsOption
from pipeline.engine.stage import Workspace
from pipeline.settings import load_settings


def retry_failed(
    months: MonthsOption = "all",
    list_only: Annotated[bool, typer.Option("--list", help="Only list what failed, and run nothing.")] = False,
    as_json: AsJson = False,
) -> int:
    """Run again what failed, as far as its run was to go, and say what a rerun cannot clear."""
    from pipeline.cli.console import failures_table, out, print_json, run_table
    from pipeline.cli.run import run_and_report
    from pipeline.ops.retry import failures_of, plan_of

    workspace = Workspace(load_settings())
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
