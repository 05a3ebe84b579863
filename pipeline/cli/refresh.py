"""The command `citeloom refresh`: run what changed at arXiv and on disk, and report it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipeline.cli.common import AsJson, MonthsOption, UntilOption, open_workspace

if TYPE_CHECKING:
    from rich.table import Table

    from pipeline.ops.refresh.refreshing import MonthRefreshed, RefreshReport


def refresh(
    months: MonthsOption = "all",
    harvest: Annotated[
        bool | None,
        typer.Option(
            "--harvest/--no-harvest", help="Ask arXiv what changed; by default as CITELOOM_REFRESH_HARVEST says."
        ),
    ] = None,
    redo: Annotated[
        bool, typer.Option("--redo", help="Run stages that call a language model too, if missing or out of date.")
    ] = False,
    llm_tokens: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Like --redo, with at most N tokens; by default CITELOOM_REFRESH_LLM_TOKENS."
        ),
    ] = None,
    until: UntilOption = None,
    as_json: AsJson = False,
) -> int:
    """Request what changed at arXiv, run only the months that changed, and report the changes.

    Without --until, the stages that the corpus has are kept up to date.

    Examples:
      citeloom refresh
      citeloom refresh --no-harvest --months 2024-03
    """
    from pipeline.cli.console import print_json, showing
    from pipeline.cli.dagster_reporter import DagsterReporter
    from pipeline.engine.progress import listening
    from pipeline.engine.stage import Workspace
    from pipeline.ops.refresh.plan import ceiling
    from pipeline.ops.refresh.refreshing import refresh as bring_up_to_date
    from pipeline.ops.webhook import notify_of_failures

    settings = open_workspace(refresh_llm_tokens=llm_tokens).settings
    tokens = ceiling(settings)
    if tokens:
        settings = settings.model_copy(update={"llm_budget_tokens": tokens})
    workspace = Workspace(settings)
    with showing(workspace.root), listening(DagsterReporter(workspace)):
        report = bring_up_to_date(
            workspace,
            months,
            ask_arxiv=settings.refresh_harvest if harvest is None else harvest,
            redo=redo or tokens > 0,
            until=until,
        )
    notify_of_failures(settings, report.failures)
    if as_json:
        print_json(_as_json(report))
    else:
        _show(report)
    return report.exit_code


def _as_json(report: RefreshReport) -> dict[str, Any]:
    months = [
        {"month": month.month, "made": month.made, "changes": asdict(month.changes) if month.changes else None}
        for month in report.months
    ]
    return {
        "harvest": asdict(report.harvest) if report.harvest else None,
        "harvest_failure": report.harvest_failure or None,
        "months": months,
        "out_of_date": report.out_of_date,
        "not_made": report.not_made,
        "over_budget": [{"stage": stage, "month": month} for stage, month in report.over_budget],
        "failures": [{"stage": stage, "month": month, "message": message} for stage, month, message in report.failures],
        "page": str(report.page) if report.page else None,
    }


def _show(report: RefreshReport) -> None:
    from pipeline.cli.console import out, print_error, print_note

    if report.harvest is not None:
        out.print(str(report.harvest), soft_wrap=True)
    if report.harvest_failure:
        print_error(f"the harvest from arXiv failed, the other steps ran: {report.harvest_failure}")
    if report.months:
        out.print(_table(report.months))
    else:
        out.print("All months are up to date.")
    for line in _lines_of_left(report):
        print_note(line)
    if report.failures:
        named = ", ".join(f"{stage} of {month}" for stage, month, _ in report.failures)
        print_error(f"{len(report.failures)} failed (messages above): {named}; fix the cause and repeat the command")
    if report.page is not None:
        out.print(f"Changes: {report.page}", soft_wrap=True)


def _table(months: Iterable[MonthRefreshed]) -> Table:
    """A line for each month that was run: how many tables were computed, and what changed."""
    from rich.table import Table

    table = Table("month", title="What changed", title_justify="left")
    table.add_column("computed", justify="right")
    for name in ("papers", "passages", "vectors"):
        table.add_column(name)
    for month in months:
        table.add_row(month.month, f"{len(month.made)} tables", *_cells(month))
    return table


def _cells(month: MonthRefreshed) -> tuple[str, str, str]:
    changes = month.changes
    if changes is None:
        return "not compared: a table is missing", "", ""
    papers = ("new", "changed", "withdrawn", "removed", "kept")
    passages = ("added", "removed", "kept")
    return (
        _counted((name, getattr(changes, f"papers_{name}")) for name in papers),
        _counted((name, getattr(changes, f"passages_{name}")) for name in passages),
        _counted((name, getattr(changes, f"vectors_{name}")) for name in ("made", "reused")),
    )


def _counted(counts: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in counts if count) or "–"


def _lines_of_left(report: RefreshReport) -> Iterator[str]:
    """The tables of language models that were not updated, and how to update them."""
    for stage, month in report.over_budget:
        yield f"{stage} of {month}: the budget was reached; answers are stored, and the next refresh continues"
    for month, tables in report.out_of_date.items():
        yield f"{month} out of date: {', '.join(f'{name} ({rows:,} rows)' for name, rows in tables.items())}"
    for month, names in report.not_made.items():
        yield f"{month} not computed yet: {', '.join(names)}"
    if report.out_of_date or report.not_made:
        yield "These were not updated: citeloom refresh --redo updates them, --llm-tokens N within a budget"
