"""The command `citeloom estimate`: what language models would cost."""

from __future__ import annotations

from typing import Annotated

import typer

from pipeline.cli.options import AsJson, MonthsOption
from pipeline.engine.stage import Workspace
from pipeline.settings import load_settings


def estimate(
    months: MonthsOption = "all",
    systems: Annotated[str | None, typer.Option(help="These systems, with commas between; else those set.")] = None,
    as_json: AsJson = False,
) -> int:
    """Say what the LLM stages would cost, before anything is spent: calls, tokens, money, time."""
    from pipeline.cli.console import estimate_table, out, print_json, print_note, waiting
    from pipeline.ops.estimate import estimate as rehearse
    from pipeline.ops.estimate import save_expectations
    from pipeline.ops.run_months import months_of_status

    workspace = Workspace(load_settings(**({} if systems is None else {"systems": systems})))
    with waiting("rehearsing the calls that the months would make; nothing is asked"):
        found = rehearse(workspace, months_of_status(workspace, months)[0])
    save_expectations(workspace, found)
    if as_json:
        print_json(found.as_json())
        return 0
    out.print(estimate_table(found))
    for note in found.notes:
        print_note(note)
    return 0
