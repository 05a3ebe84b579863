"""The command `citeloom refresh`: run what changed at arXiv and on disk, and report it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.doors.cli.common import AsJson, MonthsOption, UntilOption, open_workspace
from pipeline.stage_names import plain_name

if TYPE_CHECKING:
    from rich.table import Table

    from pipeline.ops.refresh.run import RefreshReport
    from pipeline.ops.refresh.summary import ChangeCounts, RefreshSummary
    from pipeline.storage.data_root import DataRoot


def refresh(
    months: MonthsOption = "all",
    harvest: Annotated[
        bool | None,
        typer.Option(
            "--harvest/--no-harvest",
            help="Ask arXiv what changed; by default as CITELOOM_REFRESH_HARVEST says.",
        ),
    ] = None,
    redo: Annotated[
        bool,
        typer.Option(
            "--redo", help="Run stages that call a language model too, if missing or out of date."
        ),
    ] = False,
    llm_tokens: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Like --redo, with at most N tokens; by default CITELOOM_REFRESH_LLM_TOKENS.",
        ),
    ] = None,
    until: UntilOption = None,
    as_json: AsJson = False,
) -> int:
    """Request what changed at arXiv, run only the months that changed, and summarize the changes.

    Without --until, the stages that the corpus has are kept up to date.

    Examples:
      citeloom refresh
      citeloom refresh --no-harvest --months 2024-03
    """
    from pipeline.doors.cli.console import print_json, showing
    from pipeline.doors.cli.dagster_reporter import reporting_to_dagster
    from pipeline.engine.stage import Workspace
    from pipeline.ops.refresh.plan import token_limit
    from pipeline.ops.refresh.run import refresh as bring_up_to_date
    from pipeline.ops.refresh.summary import as_json as summary_as_json

    settings = open_workspace(refresh_llm_tokens=llm_tokens).settings
    tokens = token_limit(settings)
    if tokens:
        settings = settings.model_copy(update={"llm_budget_tokens": tokens})
    workspace = Workspace(settings)
    with showing(), reporting_to_dagster(workspace) as reporter:
        report = bring_up_to_date(
            workspace,
            months,
            ask_arxiv=settings.refresh_harvest if harvest is None else harvest,
            redo=redo or tokens > 0,
            until=until,
        )
        if report.summary.started:
            reporter.report_refresh(report.summary)
    if as_json:
        print_json(
            {
                "harvest": asdict(report.harvest) if report.harvest else None,
                "harvest_failure": report.harvest_failure or None,
                **summary_as_json(report.summary),
            }
        )
    else:
        _show(report, workspace.root)
    return report.exit_code


def _show(report: RefreshReport, root: DataRoot) -> None:
    from pipeline.doors.cli.console import out, print_error, print_failures, print_note
    from pipeline.ops.refresh.summary import summary_file

    summary = report.summary
    if report.harvest is not None:
        out.print(str(report.harvest), soft_wrap=True)
    if report.harvest_failure:
        print_error(f"the harvest from arXiv failed, the other steps ran: {report.harvest_failure}")
    if summary.months:
        out.print(_table(summary))
        out.print(f"Summary: {summary_file(root, summary.started)}", soft_wrap=True)
    else:
        out.print("All months are up to date.")
    print_note(*_lines_of_not_updated(summary))
    print_failures(summary.failures)


def _table(summary: RefreshSummary) -> Table:
    """A line for each month that was run, and one for all."""
    from pipeline.doors.cli.console import make_table

    table = make_table("What changed", ("month", "papers", "passages", "vectors"))
    for month, changes in summary.months.items():
        table.add_row(month, *_cells(changes))
    if len(summary.months) > 1:
        table.add_section()
        table.add_row("all", *_cells(summary.changes))
    return table


def _cells(changes: ChangeCounts) -> tuple[str, ...]:
    """The changes of papers, passages and vectors: `2 new, 1 revised`."""
    counts: dict[str, list[str]] = {"papers": [], "passages": [], "vectors": []}
    for name, count in asdict(changes).items():
        noun, _, change = name.partition("_")
        if count:
            counts[noun].append(f"{count:,} {change}")
    return tuple(", ".join(parts) or "–" for parts in counts.values())


def _lines_of_not_updated(summary: RefreshSummary) -> Iterator[str]:
    """The tables of language models that were not updated, and how to update them."""
    for stage, month in summary.over_budget:
        yield (
            f"{plain_name(stage)} of {month}: the budget was reached; answers are stored, and the"
            " next refresh continues"
        )
    for month, tables in summary.out_of_date.items():
        counts = ", ".join(f"{name} ({rows:,} rows)" for name, rows in tables.items())
        yield f"{month} out of date: {counts}"
    for month, names in summary.not_made.items():
        yield f"{month} not computed yet: {', '.join(names)}"
    if summary.out_of_date or summary.not_made:
        yield (
            "These were not updated: citeloom refresh --redo updates them, --llm-tokens N within a"
            " budget"
        )
