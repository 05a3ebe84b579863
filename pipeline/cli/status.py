"""The command `citeloom status`: months by stages."""

from __future__ import annotations

from pipeline.cli.options import AsJson, MonthsOption
from pipeline.engine.stage import Workspace
from pipeline.settings import load_settings


def status(months: MonthsOption = "all", as_json: AsJson = False) -> int:
    """Show months by stages: rows, age, what is out of date or failed, what was left out."""
    from pipeline.cli.console import out, print_error, print_json, status_tables
    from pipeline.engine.status import month_status
    from pipeline.ops.run_months import months_of_status, stages_of
    from pipeline.storage.store import listing_cache

    workspace = Workspace(load_settings())
    chosen, trouble = months_of_status(workspace, months)
    with listing_cache():
        rows = [row for month in chosen for row in month_status(stages_of(workspace), workspace, month)]
    if trouble:
        print_error(trouble)
    if as_json:
        print_json(rows)
        return 0
    for table in status_tables(rows):
        out.print(table)
    out.print("rows · age · left out; done in green, stale in yellow, failed in red")
    for row in rows:
        if row["failure"]:
            print_error(f"{row['stage']} of {row['month']}: {row['failure']}")
    return 0
