"""The command `citeloom quality`: each month's measures against those of its neighbours."""

from __future__ import annotations

from pipeline.cli.options import AsJson, MonthsOption
from pipeline.engine.stage import Workspace
from pipeline.settings import load_settings


def quality(
    months: MonthsOption = "all",
    as_json: AsJson = False,
) -> int:
    """Show what each month measures, and which months fall out of line with those around them."""
    from pipeline.cli.console import out, print_json, print_note, quality_table, waiting
    from pipeline.evaluation.quality import findings
    from pipeline.ops.run_months import months_of_status

    workspace = Workspace(load_settings())
    with waiting("measuring what was not measured before"):
        found = [each for month in months_of_status(workspace, months)[0] for each in findings(workspace, month)]
    if as_json:
        print_json([each.as_json() for each in found])
        return 0
    out.print(quality_table(found) if found else "No month has anything to measure.")
    for each in found:
        if not each.holds:
            print_note(f"{each.month}: {each.told()}")
    return 0
