"""The command `citeloom quality`: each month's measures against those of its neighbours. Not here: the measures
(`pipeline.evaluation.quality`).

`cli.py` joins it to the command by one line and hands over what ends a command that fails.
"""

from __future__ import annotations

import typer

from pipeline.commands.joining import AsJson, Guard, MonthsOption, ended
from pipeline.settings import load_settings
from pipeline.stages import Workspace


def add_quality_command(app: typer.Typer, guarded: Guard) -> None:
    """Join the command to an app. guarded: calls a command's function, shows what went wrong, gives the exit code."""
    app.command("quality")(ended(quality, guarded))


def quality(
    months: MonthsOption = "all",
    as_json: AsJson = False,
) -> int:
    """Show what each month measures, and which months fall out of line with those around them."""
    from pipeline.commands.display import out, print_json, print_note, quality_table, waiting
    from pipeline.evaluation.quality import findings
    from pipeline.running.runs import months_of_status

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
