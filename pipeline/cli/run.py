"""The commands `citeloom run` and `demo`: stages over months, and what came of them."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.cli.options import AsJson, MonthsOption
from pipeline.cli.sharing import share
from pipeline.engine.stage import Workspace
from pipeline.errors import SettingError
from pipeline.settings import SAMPLE_DUMP, SAMPLE_SNAPSHOT, Settings, load_settings

if TYPE_CHECKING:
    from pipeline.ops.run_months import RunReport


def run(
    months: MonthsOption = "all",
    until: Annotated[str | None, typer.Option(help="Run every stage up to this one, and stop there.")] = None,
    select: Annotated[str | None, typer.Option(help="Run these stages alone, with commas between.")] = None,
    force: Annotated[bool, typer.Option(help="Compute again what is up to date.")] = False,
    parallel: Annotated[int, typer.Option(min=1, max=64, help="Months at once, each in a process of its own.")] = 1,
    as_json: AsJson = False,
) -> int:
    """Run what is missing or out of date, from the zips to the report."""
    if until is not None and select is not None:
        raise SettingError("--until and --select exclude each other: give one of them")
    chosen = [name.strip() for name in (select or "").split(",") if name.strip()]
    if select is not None and not chosen:
        raise SettingError("--select names no stage: give one or more, with commas between")
    return _run(load_settings(), months, until, chosen, force=force, parallel=parallel, as_json=as_json)


def demo(
    force: Annotated[bool, typer.Option(help="Compute again what is up to date.")] = False, as_json: AsJson = False
) -> int:
    """Run the sample corpus through every stage to the report, into the embedded index."""
    from pipeline.ops.preflight import mark_demo

    settings = load_settings(dump_dir=SAMPLE_DUMP, metadata_snapshot=SAMPLE_SNAPSHOT, qdrant_url=None)
    mark_demo(Workspace(settings))
    return _run(settings, "all", None, [], force=force, as_json=as_json)


def _run(
    settings: Settings, months: str, until: str | None, select: list[str], *, force: bool, as_json: bool,
    parallel: int = 1,
) -> int:  # fmt: skip
    from pipeline.cli.console import showing
    from pipeline.ops.preflight import check
    from pipeline.ops.run_months import known_months, run_months
    from pipeline.running.parallel import run_months_at_once
    from pipeline.stages import choose_stages

    workspace, stages = Workspace(settings), choose_stages(until, select)
    chosen = known_months(workspace, months)
    check(workspace, stages)
    share(settings)
    with showing(steps=len(chosen) * len(stages)):
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
