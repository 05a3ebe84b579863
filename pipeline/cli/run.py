"""The commands `citeloom run` and `demo`: stages over months, and what came of them."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.cli.options import AsJson, MonthsOption, SelectOption, UntilOption, check_stages
from pipeline.cli.workspace import export_settings, open_workspace

if TYPE_CHECKING:
    from pipeline.engine.stage import Workspace
    from pipeline.ops.run_months import RunReport


def run(
    months: MonthsOption = "all",
    until: UntilOption = None,
    select: SelectOption = None,
    force: Annotated[bool, typer.Option(help="Compute again what is up to date.")] = False,
    parallel: Annotated[int, typer.Option(min=1, max=64, help="Months at once, each in a process of its own.")] = 1,
    as_json: AsJson = False,
) -> int:
    """Run the stages that are missing or out of date, from the zips to the report.

    Examples:
      citeloom run --until index_receipts
      citeloom run --months 2024-03 --select papers,passages --force
    """
    selected = check_stages(until, select)
    return _run(open_workspace(), months, until, selected, force=force, parallel=parallel, as_json=as_json)


def demo(
    force: Annotated[bool, typer.Option(help="Compute again what is up to date.")] = False, as_json: AsJson = False
) -> int:
    """Run the sample corpus through every stage, from its zips to the report.

    Examples:
      citeloom demo
      CITELOOM_DATA=demo-data citeloom demo --json
    """
    from pipeline.engine.stage import Workspace
    from pipeline.ops.preflight import mark_demo
    from pipeline.settings import SAMPLE_DUMP, SAMPLE_SNAPSHOT, load_settings

    workspace = Workspace(load_settings(dump_dir=SAMPLE_DUMP, metadata_snapshot=SAMPLE_SNAPSHOT, qdrant_url=None))
    mark_demo(workspace)
    return _run(workspace, "all", None, [], force=force, as_json=as_json)


def _run(
    workspace: Workspace, months: str, until: str | None, select: list[str], *, force: bool, as_json: bool,
    parallel: int = 1,
) -> int:  # fmt: skip
    from pipeline.cli.console import expected_seconds, showing
    from pipeline.ops.preflight import check
    from pipeline.ops.run_months import known_months, run_months
    from pipeline.running.parallel import run_months_at_once
    from pipeline.stages import choose_stages

    stages = choose_stages(until, select)
    chosen = known_months(workspace, months)
    check(workspace, stages)
    export_settings(workspace.settings)
    with showing(expected=expected_seconds(workspace.root, chosen, [stage.name for stage in stages])):
        if parallel > 1 and len(chosen) > 1:
            report = run_months_at_once(workspace, chosen, stages, parallel, force=force)
        else:
            report = run_months(workspace, chosen, stages, force=force)
    _show_run(workspace, report, as_json=as_json)
    return int(report.exit_code)


def _show_run(workspace: Workspace, report: RunReport, *, as_json: bool) -> None:
    from pipeline.cli.console import out, print_error, print_json, run_table

    page = workspace.root.path / "reports" / "index.html"
    failures = [dict(zip(("stage", "month", "message"), failure, strict=True)) for failure in report.failures]
    if as_json:
        outcomes = [asdict(outcome) for outcome in report.outcomes]
        print_json({"outcomes": outcomes, "failures": failures, "report": str(page) if page.exists() else None})
        return
    out.print(run_table(report.outcomes))
    if failures:
        named = ", ".join(f"{failure['stage']} of {failure['month']}" for failure in failures)
        print_error(f"{len(failures)} failed, as told above: {named}; once mended, the same command goes on from there")
    if page.exists():
        out.print(f"Report: {page}", soft_wrap=True)
