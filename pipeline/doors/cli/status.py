"""The commands that look at the months of a data root: `citeloom status` and `estimate`."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipeline.doors.cli.common import AsJson, MonthsOption, SystemsOption, open_workspace
from pipeline.engine.progress import duration
from pipeline.stage_names import plain_name
from pipeline.text import number_of

if TYPE_CHECKING:
    from rich.table import Table

    from pipeline.engine.stage import Workspace
    from pipeline.ops.estimate import CostEstimate, StageCost

# With more months, a row for each month replaces the table of stages.
_MONTHS_IN_DETAIL = 6
_COLOURS = {
    "done": "green", "incomplete": "cyan", "stale": "yellow", "failed": "red", "missing": "dim",
}  # fmt: skip
_STATES = {name: name for name in _COLOURS} | {"stale": "out of date"}

StatusRow = Mapping[str, Any]


def status(
    months: MonthsOption = "all",
    failed: Annotated[
        bool, typer.Option("--failed", help="Only list failures, and whether a rerun can help.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Show how far every month is: rows, age, what is out of date, failed or left out.

    Examples:
      citeloom status
      citeloom status --months 2024-03..2024-05 --json
      citeloom status --failed
    """
    from pipeline.doors.cli.console import out, print_error, print_json
    from pipeline.engine.status import month_status
    from pipeline.ops.run_months import months_of_status
    from pipeline.stages import STAGES
    from pipeline.storage.data_root import deletable

    workspace = open_workspace()
    selected, trouble = months_of_status(workspace, months)
    if trouble:
        print_error(trouble)
    if failed:
        _show_failures(workspace, months, as_json=as_json)
        return 0
    with workspace.read_cache():
        rows = [row for month in selected for row in month_status(STAGES, workspace, month)]
        unused = deletable(workspace.root)
    if as_json:
        print_json({"stages": rows, "deletable": unused})
        return 0
    out.print(f"Data root: {workspace.root.path}", soft_wrap=True, markup=False)
    settings = workspace.settings
    chosen = f"Embedder: {settings.embedder} ({settings.embedder_reason})"
    out.print(chosen, soft_wrap=True, markup=False)
    for part in status_report(rows):
        out.print(part)
    if unused:
        paths = ", ".join(unused)
        out.print(f"Can be deleted: {paths}", soft_wrap=True, markup=False)
    for row in rows:
        if row["failure"]:
            print_error(f"{plain_name(row['stage'])} of {row['month']}: {row['failure']}")
    return 0


def _show_failures(workspace: Workspace, months: str, *, as_json: bool) -> None:
    from pipeline.doors.cli.console import out, print_json
    from pipeline.ops.run_months import failures_in

    failures = failures_in(workspace, months)
    if as_json:
        print_json({"failed": [asdict(failure) for failure in failures]})
        return
    if not failures:
        out.print(f"No failure is recorded in {workspace.root.path}.", soft_wrap=True)
    for failure in failures:
        text = f"{plain_name(failure.stage_name)} of {failure.month}: {failure.describe()}"
        out.print(text, markup=False, soft_wrap=True)


def status_report(rows: Sequence[StatusRow]) -> Iterator[Table | str]:
    """The status of every stage of a few months, or a row of counts for each of many.

    A stage that is off is left out, and so are the stages after the last one that any month has:
    nobody asked for them.
    """
    months = list(dict.fromkeys(row["month"] for row in rows))
    stages = list(dict.fromkeys(row["stage"] for row in rows))
    enabled = [
        row for row in rows if not row["off"] and (row["state"], row["rows"]) != ("done", None)
    ]
    reached = max(
        (stages.index(row["stage"]) for row in enabled if row["state"] != "missing"), default=-1
    )
    rows_in_use = [row for row in enabled if stages.index(row["stage"]) <= reached]
    if not rows_in_use:
        yield (
            f"{number_of(len(months), 'month')} found, no stage has run yet; citeloom run starts"
            f" with {plain_name(stages[0])}."
        )
        return
    if len(months) > _MONTHS_IN_DETAIL:
        yield _months_table(rows_in_use, months)
        yield (
            "stages that are done, incomplete (a model did not answer), out of date, failed or"
            " missing; rows that they left out"
        )
    else:
        yield _stages_table(rows_in_use, months)
        yield (
            "rows · age · left out; green is done, blue incomplete, yellow out of date, red failed"
        )
    later = len({row["stage"] for row in enabled} - {row["stage"] for row in rows_in_use})
    if later:
        yield f"No month has reached the {number_of(later, 'later stage')}."


def _stages_table(rows: Sequence[StatusRow], months: Sequence[str]) -> Table:
    """A row for each stage, a column for each month."""
    from rich.text import Text

    from pipeline.doors.cli.console import make_table

    cells = {
        (row["stage"], row["month"]): Text(_describe_row(row), _COLOURS[row["state"]])
        for row in rows
    }
    table = make_table("", ())
    table.add_column("stage", no_wrap=True)
    for month in months:
        table.add_column(month, overflow="fold", min_width=len(month))
    for stage in dict.fromkeys(row["stage"] for row in rows):
        table.add_row(
            plain_name(stage), *(cells.get((stage, month), Text("–", "dim")) for month in months)
        )
    return table


def _describe_row(row: StatusRow) -> str:
    facts = [_STATES[row["state"]]] if row["state"] != "done" else []
    if row["rows"] is not None:
        facts += [f"{row['rows']:,}", duration(time.time() - row["written_at"])]
    if row["left_out"]:
        facts.append(f"{sum(row['left_out'].values()):,} left out")
    return " · ".join(facts)


def _months_table(rows: Sequence[StatusRow], months: Sequence[str]) -> Table:
    """A row for each month: how many of its stages are in each state, and what they left out."""
    from pipeline.doors.cli.console import make_table

    columns = (*_STATES.values(), "left out")
    table = make_table("", ("month", *columns), right=columns)
    for month in months:
        of_month = [row for row in rows if row["month"] == month]
        counts = Counter(row["state"] for row in of_month)
        if counts.keys() == {"missing"}:  # nobody has begun it
            counts.clear()
        left_out = sum(sum(row["left_out"].values()) for row in of_month)
        table.add_row(
            month,
            *(f"[{_COLOURS[state]}]{counts[state]}[/]" for state in _COLOURS),
            f"{left_out:,}",
        )
    return table


def estimate(
    months: MonthsOption = "all", systems: SystemsOption = None, as_json: AsJson = False
) -> int:
    """Estimate what the language models would cost: calls, tokens, money, time.

    Examples:
      citeloom estimate --months 2024-03
      citeloom estimate --systems chatcite,zero_shot --json
    """
    from pipeline.doors.cli.console import out, print_json, print_note, spinner
    from pipeline.ops.estimate import estimate as estimate_months
    from pipeline.ops.run_months import months_of_status

    workspace = open_workspace(systems=systems)
    selected, _ = months_of_status(workspace, months)
    with spinner("counting the calls of these months; no model is called"):
        estimated = estimate_months(workspace, selected)
    if as_json:
        print_json(estimated.as_json())
        return 0
    if estimated.parts:
        out.print(_estimate_table(estimated))
    print_note(*estimated.notes)
    return 0


def _estimate_table(estimate: CostEstimate) -> Table:
    """The cost of each stage that calls a language model, by writer, over the months."""
    from rich import box

    from pipeline.doors.cli.console import make_table
    from pipeline.identity.months import describe_months
    from pipeline.ops.estimate import sum_parts
    from pipeline.tables.writers import short_names

    # Without vertical lines, as eight columns with them are wider than 80.
    table = make_table(
        f"To pay in {describe_months(list(estimate.months))}",
        (),
        box=box.SIMPLE_HEAD,
        show_edge=False,
        padding=0,
    )
    # At 80 columns, a long name folds: one cut short, "key_ele…", could not be passed to another
    # command.
    table.add_column("stage", overflow="fold", min_width=len("citation_support"))
    money = ("money",) if estimate.priced else ()
    headings = ("calls", "answered", "to pay", "tokens read", "tokens written", *money, "time")
    totals = _estimate_cells(estimate.total(), priced=estimate.priced)
    for heading, total in zip(headings, totals, strict=True):
        width = max(map(len, [total, *heading.split()]))
        table.add_column(heading, justify="right", min_width=width)
    display_names = short_names(part.writer for part in estimate.parts)
    by_name: dict[str, list[StageCost]] = {}
    for part in estimate.parts:
        by_name.setdefault(
            f"{plain_name(part.stage)} {display_names[part.writer]}".strip(), []
        ).append(part)
    for name, parts in by_name.items():
        table.add_row(name, *_estimate_cells(sum_parts(parts), priced=estimate.priced))
    table.add_section()
    table.add_row("all", *totals, style="bold")
    return table


def _estimate_cells(part: StageCost, *, priced: bool) -> list[str]:
    counts = (part.calls, part.answered, part.to_pay, part.prompt_tokens, part.completion_tokens)
    money = [f"{part.money:,.2f}"] if priced else []
    return [
        *(f"{count:,}" for count in counts),
        *money,
        duration(part.seconds) if part.seconds else "–",
    ]
