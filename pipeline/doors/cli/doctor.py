"""The command that checks an installation: `citeloom doctor`."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.doors.cli.common import AsJson, open_workspace
from pipeline.errors import SettingError

if TYPE_CHECKING:
    from rich.table import Table

    from pipeline.ops.doctor.findings import DoctorFinding

_STYLES = {"ok": "green", "warning": "yellow", "problem": "bold red", "not checked": "dim"}


def doctor(
    online: Annotated[
        bool, typer.Option("--online", help="Check arXiv's API and OAI-PMH too.")
    ] = False,
    model: Annotated[
        bool,
        typer.Option(
            "--model",
            help="Try the language models by four requests each, and write their tables into the"
            " file of CITELOOM_MODELS, else models.toml.",
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before --model.")] = False,
    as_json: AsJson = False,
) -> int:
    """Check settings, disk, servers, models and rate limits, and say how to solve each problem.

    Examples:
      citeloom doctor
      citeloom doctor --online --json
      citeloom doctor --model
    """
    from pipeline.doors.cli.console import out, print_json

    findings, code = _try_models(yes=yes) if model else _examine(online=online)
    counts = Counter(finding.state.value for finding in findings)
    if as_json:
        print_json({"findings": [asdict(finding) for finding in findings], "counts": counts})
    else:
        out.print(_findings_table(findings))
        out.print(", ".join(f"{state}: {count}" for state, count in counts.items()))
    return code


def _try_models(*, yes: bool) -> tuple[list[DoctorFinding], int]:
    """The findings on each model that the settings name, and the exit code; the user is asked
    first, unless `yes`. Raises SettingError where only the bundled model is named.
    """
    from pipeline.engine.redaction import collect_secrets
    from pipeline.ops.doctor.findings import FindingState, mask_secrets
    from pipeline.ops.doctor.servers import models_to_try, try_model

    settings = open_workspace().settings
    models = models_to_try(settings)
    if not models:
        raise SettingError("--model tries an endpoint: set CITELOOM_LLM_URL or CITELOOM_MODELS")
    cost = ", ".join(f"{model.name} some {model.context:,} tokens" for model in models)
    if not yes:
        typer.confirm(
            f"Four requests to each model, which may cost money ({cost}). Go on?", abort=True
        )
    file, secrets = settings.models or Path("models.toml"), collect_secrets(settings)
    findings = [
        mask_secrets(finding, secrets) for model in models for finding in try_model(model, file)
    ]
    has_problem = any(finding.state is FindingState.PROBLEM for finding in findings)
    return findings, 1 if has_problem else 0


def _examine(*, online: bool) -> tuple[list[DoctorFinding], int]:
    """The findings and the exit code."""
    from pipeline.doors.cli.console import spinner
    from pipeline.ops.doctor.checks import all_probes, invalid_settings
    from pipeline.ops.doctor.findings import FindingState, Probe, mask_secrets, run_probes
    from resources.dagster_home import probe_instance

    try:
        workspace = open_workspace()
    except SettingError as error:
        secrets = [
            value
            for name, value in os.environ.items()
            if value and name.upper().endswith("_API_KEY")
        ]
        return [mask_secrets(finding, secrets) for finding in invalid_settings(error)], 2
    with spinner("checking settings, disk, servers and models") as show_step:
        dagster = Probe(
            "dagster",
            "Are Dagster's runs in order?",
            probe_instance,
            "end what holds its databases, and check the disk",
            writes=True,
        )
        findings = run_probes([*all_probes(online=online), dagster], workspace, show_step)
    has_problem = any(finding.state is FindingState.PROBLEM for finding in findings)
    return findings, 1 if has_problem else 0


def _findings_table(findings: Sequence[DoctorFinding]) -> Table:
    from rich.text import Text

    from pipeline.doors.cli.console import make_table

    table = make_table("Checks", ("check", "state", "finding"))
    for finding in findings:
        style = _STYLES[finding.state.value]
        text = Text(finding.seen)
        if finding.way_out:
            text.append(f"\n→ {finding.way_out}", style=style)
        table.add_row(finding.name, Text(finding.state.value, style=style), text)
    return table
