"""The command `citeloom run`, and what `demo` shares with it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.doors.cli.common import (
    AsJson,
    MonthsOption,
    SelectOption,
    UntilOption,
    open_workspace,
    split_names,
)
from pipeline.errors import SettingError

if TYPE_CHECKING:
    from pipeline.engine.stage import Stage, Workspace
    from pipeline.ops.run_months import RunReport
    from pipeline.storage.store import DataPath


def run(
    months: MonthsOption = "all",
    until: UntilOption = None,
    select: SelectOption = None,
    part: Annotated[
        str | None,
        typer.Option(
            metavar="N/M",
            help="Run part N of M of the months, beside processes that run the others, also on"
            " other machines; with --until embeddings.",
        ),
    ] = None,
    failed: Annotated[
        bool,
        typer.Option(
            "--failed",
            help="Only the months that have a failure; citeloom status --failed lists them.",
        ),
    ] = False,
    force: Annotated[bool, typer.Option(help="Compute again what is up to date.")] = False,
    retry_failed: Annotated[
        bool,
        typer.Option(
            "--retry-failed",
            help="Ask language models also for what they refused, or failed at three times.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Build the corpus: read the dump, index it, write and score, wherever a month is missing, out
    of date or incomplete.

    With --failed and without --until and --select, months go through the failed stages and those
    that any month has.

    Examples:
      citeloom run --until index
      citeloom run --months 2024-03 --select papers,passages --force
      citeloom run --failed
      citeloom run --part 3/16 --until embeddings
    """
    selected = split_names(select)
    if until is not None and select is not None:
        raise SettingError("--until and --select exclude each other: give one of them")
    if select is not None and not selected:
        raise SettingError("--select names no stage: give one or more, comma-separated")
    if part is not None and (failed or force or retry_failed):
        raise SettingError("--part excludes --failed, --force and --retry-failed")
    part_number = None if part is None else _read_part(part)

    from pipeline.doors.cli.console import print_note
    from pipeline.ops.run_months import RunReport, failed_stages, failures_in, known_months
    from pipeline.stages import choose_stages

    stages = choose_stages(until, selected)
    workspace = open_workspace()
    if failed:
        failures = failures_in(workspace, months)
        months_to_run = sorted({failure.month for failure in failures})
        if until is None and select is None:
            stages = failed_stages(workspace, failures)
    else:
        months_to_run = known_months(workspace, months)
    if not months_to_run:
        print_note(f"no failure is recorded in {workspace.root.path}")
    if retry_failed:
        from pipeline.llm.client import open_cache

        with closing(open_cache(workspace)) as cache:
            cache.forget_failures()
    report = RunReport()
    if months_to_run:
        report = run_and_report(workspace, months_to_run, stages, force=force, part=part_number)
    if months_to_run or as_json:
        show_run(workspace, report, as_json=as_json)
    return report.exit_code


def _read_part(text: str) -> tuple[int, int]:
    """The number of a part, from 1, and how many there are. Raises SettingError."""
    number, slash, parts = text.partition("/")
    if slash and number.isdecimal() and parts.isdecimal() and 1 <= int(number) <= int(parts):
        return int(number), int(parts)
    raise SettingError(f"--part {text}: give its number and how many there are, such as 3/16")


def run_and_report(
    workspace: Workspace,
    months: Sequence[str],
    stages: Sequence[Stage],
    *,
    force: bool = False,
    part: tuple[int, int] | None = None,
) -> RunReport:
    """Run months, or one part of them, through some stages, with progress shown and Dagster
    notified.

    Raises SettingError where a setting does not suit the stages, before anything runs.
    """
    from pipeline.doors.cli.console import showing
    from pipeline.doors.cli.dagster_reporter import reporting_to_dagster
    from pipeline.ops.preflight import check, check_part
    from pipeline.ops.run_months import run_months, run_part

    if part is not None:
        check_part(workspace.settings, stages)
    check(workspace, stages)
    with showing(), reporting_to_dagster(workspace):
        if part is not None:
            return run_part(workspace, months, stages, part)
        return run_months(workspace, months, stages, force=force, completes=True)


def show_run(workspace: Workspace, report: RunReport, *, as_json: bool) -> None:
    """Print what a run did: a row a stage, its failures, and where the report lies."""
    from pipeline.doors.cli.console import out, print_failures, print_json, run_table

    page = _report_page(workspace)
    failures = [
        dict(zip(("stage", "month", "message"), failure, strict=True))
        for failure in report.failures
    ]
    if as_json:
        print_json(
            {
                "outcomes": report.outcomes,
                "failures": failures,
                "report": str(page) if page.exists() else None,
            }
        )
        return
    out.print(run_table(report.outcomes))
    print_failures(report.failures)
    print_report_address(workspace)


def print_report_address(workspace: Workspace) -> None:
    """Print where the overall page of the reports lies, if there is one."""
    from pipeline.doors.cli.console import out

    page = _report_page(workspace)
    if page.exists():
        out.print(f"Report: {page}", soft_wrap=True)


def _report_page(workspace: Workspace) -> DataPath:
    return workspace.root.path / "reports" / "index.html"
