"""The command `citeloom harvest`: metadata that changed at arXiv."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from pipeline.cli.options import AsJson
from pipeline.engine.stage import Workspace
from pipeline.settings import load_settings


def harvest(
    first: Annotated[
        str | None, typer.Option("--from", help="First day (2026-11-01); else where the last harvest ended.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Ask arXiv over OAI-PMH for the metadata that changed since the last harvest."""
    from pipeline.cli.console import out, print_json, showing
    from pipeline.metadata.harvest import harvest as ask

    workspace = Workspace(load_settings())
    with showing(steps=1):
        report = ask(workspace.settings, workspace, since=first)
    if as_json:
        print_json(asdict(report))
    else:
        out.print(str(report), soft_wrap=True)
    return 0
