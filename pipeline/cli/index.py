"""The commands of the index: `citeloom audit`, `reindex` and `snapshot`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from pipeline.cli.options import AsJson, MonthsOption
from pipeline.cli.sharing import share
from pipeline.engine.stage import Workspace
from pipeline.errors import SettingError
from pipeline.settings import load_settings

RepairOption = Annotated[bool, typer.Option("--repair", help="Load what is missing or changed, remove the rest.")]


def audit(months: MonthsOption = "all", repair: RepairOption = False, as_json: AsJson = False) -> int:
    """Compare the tables with the index, point by point, and mend it where that is asked for."""
    from pipeline.cli.console import audit_lines, audit_table, out, print_json, print_note, waiting
    from pipeline.index.upkeep import audit_months
    from pipeline.index.upkeep import repair as mend

    workspace = Workspace(load_settings())
    with waiting("asking the index for its points") as step:
        found = audit_months(workspace, months, step)
    after = found
    if repair and not found.clean:
        print_note(f"found {found.describe()}; mending")
        after = mend(workspace, found, lambda month: print_note(f"{month}: loading it again"))
    if as_json:
        print_json({**after.as_json(), "found": found.as_json()} if repair else after.as_json())
    else:
        out.print(audit_table(after))
        for line in audit_lines(after):
            print_note(line)
    return 0 if after.clean else 1


def reindex(
    drop_old: Annotated[bool, typer.Option("--drop-old", help="Delete every collection but the new one.")] = False,
    as_json: AsJson = False,
) -> int:
    """Load all months into a collection of the settings' model and form, and let searches ask it once it is whole."""
    from pipeline.cli.console import print_json, print_note, reindex_lines
    from pipeline.index.reindex import reindex as change_over
    from pipeline.ops.preflight import check_data_root

    workspace = Workspace(load_settings())
    check_data_root(workspace)
    share(workspace.settings)
    done = change_over(workspace, lambda months: _load_again(workspace, months), drop_old=drop_old, told=print_note)
    if as_json:
        print_json({**asdict(done), "audit": done.audit.as_json() if done.audit else None, "done": done.done})
    else:
        for line in reindex_lines(done):
            typer.echo(line)
    return 0 if done.done else 1


def _load_again(workspace: Workspace, months: Sequence[str]) -> list[tuple[str, str, str]]:
    """Run on months what makes their points; what failed."""
    from pipeline.cli.console import showing
    from pipeline.index.reindex import STAGES
    from pipeline.ops.run_months import run_months
    from pipeline.stages import choose_stages

    stages = choose_stages(select=STAGES)
    with showing(steps=len(months) * len(stages)):
        return run_months(workspace, months, stages).failures


def snapshot(
    output: Annotated[Path | None, typer.Option(help="Folder for the file; else the data root's snapshots.")] = None,
    restore: Annotated[Path | None, typer.Option(help="Snapshot to make the index of again.")] = None,
    as_json: AsJson = False,
) -> int:
    """Put the index of a Qdrant server into one file, or make it of such a file again."""
    from pipeline.cli.console import print_json, waiting
    from pipeline.index.upkeep import restore_snapshot, take_snapshot

    if output is not None and restore is not None:
        raise SettingError("--output and --restore exclude each other: give one of them")
    workspace = Workspace(load_settings())
    if restore is not None:
        with waiting(f"restoring {restore}"):
            made = restore_snapshot(workspace, restore)
    else:
        with waiting("taking a snapshot"):
            made = str(take_snapshot(workspace, output or workspace.local / "snapshots"))
    if as_json:
        print_json({"restored" if restore else "snapshot": made})
    else:
        typer.echo(f"searches ask {made} now" if restore else made)
    return 0
