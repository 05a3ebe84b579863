"""The commands of the index: `citeloom audit` and `reindex`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.doors.cli.common import AsJson, MonthsOption, export_settings, open_workspace
from pipeline.stage_names import plain_name

if TYPE_CHECKING:
    from rich.table import Table

    from pipeline.engine.stage import Workspace
    from pipeline.index.audit import IndexAudit
    from pipeline.index.reindex import Reindexed

RepairOption = Annotated[
    bool, typer.Option("--repair", help="Load what is missing or changed, remove the rest.")
]

# With more months, a table has only those that are not in order.
_MONTHS_SHOWN = 12
# Ids of one kind and month that are printed; --json has all of them.
_IDS_SHOWN = 5


def audit(
    months: MonthsOption = "all", repair: RepairOption = False, as_json: AsJson = False
) -> int:
    """Check tables and ledgers against their digests, and the index against the tables, point by
    point; with --repair, make the index agree.

    Examples:
      citeloom audit
      citeloom audit --months 2024-03 --repair
    """
    from pipeline.doors.cli.console import out, print_json, print_note, spinner
    from pipeline.index.audit import audit_months
    from pipeline.index.audit import repair as repair_index

    workspace = open_workspace()
    with spinner("reading the points of the index") as show_step:
        before = audit_months(workspace, months, show_step)
    after = before
    if repair and not before.clean:
        print_note(f"found {before.describe()}; repairing")
        after = repair_index(
            workspace, before, lambda month: print_note(f"{month}: loading it again")
        )
    if as_json:
        print_json({**after.as_json(), "found": before.as_json()} if repair else after.as_json())
    else:
        out.print(_audit_table(after))
        print_note(*audit_lines(after))
    return 0 if after.clean else 1


def _audit_table(audit: IndexAudit) -> Table:
    """One row per month; if there are many, only those that are not in order."""
    from rich.markup import escape

    from pipeline.doors.cli.console import make_table
    from pipeline.index.load import KINDS

    columns = ("expected", "present", *KINDS)
    collections = ", ".join(dict.fromkeys(month.collection for month in audit.months))
    title = "The index agrees with the tables"
    if not audit.index_is_clean:
        title = "[red]The index differs from the tables[/]"
    elif audit.failures:
        title = "[red]Some files are damaged, or months could not be audited[/]"
    table = make_table(
        title,
        ("month", *columns),
        right=columns,
        caption=f"{audit.describe()}\n{escape(collections)}",
    )
    for month in audit.months:
        if month.clean and len(audit.months) > _MONTHS_SHOWN:
            continue
        values = (getattr(month, name) for name in columns)
        counts = (f"{value if isinstance(value, int) else len(value):,}" for value in values)
        table.add_row(month.month, *counts, style=None if month.clean else "red")
    return table


def audit_lines(audit: IndexAudit) -> Iterator[str]:
    """Differences by name: the first ids of each kind, and months that failed."""
    from pipeline.identity.months import describe_months
    from pipeline.index.load import KINDS

    for month in audit.months:
        for kind in KINDS:
            ids = getattr(month, kind)
            if ids:
                yield f"{month.month} {kind}: {_first_ids(ids)}"
    for collection, ids in audit.outside:
        if ids:
            yield f"{collection} foreign, of no month: {_first_ids(ids)}"
    yield from (f"{month}: {message}" for month, message in audit.failures)
    if audit.months_not_live:
        yield (
            f"searches use {audit.live}, and the vectors of"
            f" {describe_months(list(audit.months_not_live))} belong to another collection:"
            " citeloom run computes them again by the settings, citeloom reindex switches the"
            " collection"
        )
    if not audit.index_is_clean:
        yield "citeloom audit --repair corrects the index; --json lists every point"


def _first_ids(ids: Sequence[object]) -> str:
    more = f" and {len(ids) - _IDS_SHOWN:,} more" if len(ids) > _IDS_SHOWN else ""
    return ", ".join(map(str, ids[:_IDS_SHOWN])) + more


def reindex(
    drop_old: Annotated[
        bool, typer.Option("--drop-old", help="Delete every collection but the new one.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Load all months into a new index after a changed model, quantization or server, then let
    searches use it.

    Examples:
      CITELOOM_QDRANT_QUANTIZATION=none citeloom reindex
      CITELOOM_QDRANT_URL=http://localhost:6333 citeloom reindex
    """
    from pipeline.doors.cli.console import print_json, print_note
    from pipeline.index.reindex import reindex as switch_collection
    from pipeline.ops.preflight import check_data_root

    workspace = open_workspace()
    check_data_root(workspace)
    export_settings(workspace.settings)
    done = switch_collection(
        workspace, lambda months: _load(workspace, months), drop_old=drop_old, on_step=print_note
    )
    if as_json:
        print_json(
            {
                **asdict(done),
                "audit": done.audit.as_json() if done.audit else None,
                "done": done.done,
            }
        )
    else:
        typer.echo("\n".join(_reindex_lines(done)))
    return 0 if done.done else 1


def _load(workspace: Workspace, months: Sequence[str]) -> list[tuple[str, str, str]]:
    """Run the stages that load these months; returns (stage, month, message) of each failure."""
    from pipeline.doors.cli.console import showing
    from pipeline.index.reindex import STAGES
    from pipeline.ops.run_months import run_months
    from pipeline.stages import choose_stages

    with showing():
        return run_months(workspace, months, choose_stages(select=STAGES)).failures


def _reindex_lines(done: Reindexed) -> Iterator[str]:
    if not done.done:
        reasons = [f"{plain_name(stage)} of {month} failed" for stage, month, _ in done.failures]
        if done.audit is not None and not done.audit.clean:
            reasons.append(f"its audit found {done.audit.describe()}, which citeloom audit lists")
        yield (
            f"{done.collection} is incomplete ({'; '.join(reasons)}); searches use"
            f" {done.live or 'nothing yet'}."
        )
        yield "Once this is corrected, citeloom reindex continues from there."
        return
    if done.before == done.live:
        yield f"Searches already use {done.live}, which matches the settings: nothing was loaded."
    else:
        replaced = f" instead of {done.before}" if done.before else ""
        yield f"Searches now use {done.live}{replaced}."
    if done.dropped:
        yield f"Deleted: {', '.join(done.dropped)}."
    if done.kept:
        yield (
            f"No longer used, but kept: {', '.join(done.kept)}; citeloom reindex --drop-old deletes"
            " them."
        )
