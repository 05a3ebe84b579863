"""The command `citeloom doctor`: probes settings, disk, servers and models, and names the way out of each problem."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.cli.options import AsJson
from pipeline.engine.stage import Workspace
from pipeline.errors import SettingError
from pipeline.settings import load_settings

if TYPE_CHECKING:
    from rich.table import Table

    from pipeline.ops.doctor.findings import Finding

_STYLES = {"ok": "green", "warning": "yellow", "problem": "bold red", "not asked": "dim"}


def doctor(
    online: Annotated[bool, typer.Option("--online", help="Ask arXiv too, its API and OAI-PMH.")] = False,
    as_json: AsJson = False,
) -> int:
    """Look at settings, disk, servers, models and rate limits, and tell the way out of each problem."""
    from pipeline.cli.console import out, print_json

    findings, code = _find(online=online)
    counts = Counter(each.state.value for each in findings)
    if as_json:
        print_json({"findings": [asdict(each) for each in findings], "counts": counts})
    else:
        out.print(_table(findings))
        out.print(", ".join(f"{state}: {count}" for state, count in counts.items()))
    return code


def _find(*, online: bool) -> tuple[list[Finding], int]:
    """What was found, and what the command ends with."""
    from pipeline.cli.console import waiting
    from pipeline.ops.doctor.checks import all_probes
    from pipeline.ops.doctor.environment import invalid_settings
    from pipeline.ops.doctor.findings import FindingState, masked, run_probes
    from resources.dagster_home import dagster_home, examine

    try:
        workspace = Workspace(load_settings())
    except SettingError as error:
        secrets = [value for name, value in os.environ.items() if value and name.upper().endswith("_API_KEY")]
        return [masked(finding, secrets) for finding in invalid_settings(error)], 2
    with waiting("looking at settings, disk, servers and models"):
        probes = all_probes(lambda workspace: examine(dagster_home(workspace)), online=online)
        findings = run_probes(probes, workspace)
    return findings, 1 if any(finding.state is FindingState.PROBLEM for finding in findings) else 0


def _table(findings: Sequence[Finding]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table("what", "state", "seen", title="What was looked at", title_justify="left")
    for each in findings:
        style = _STYLES[each.state.value]
        seen = Text(each.seen)
        if each.way_out:
            seen.append(f"\n→ {each.way_out}", style=style)
        table.add_row(each.name, Text(each.state.value, style=style), seen)
    return table
