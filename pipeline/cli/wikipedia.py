"""The command `citeloom import-wikipedia`: a snapshot into a data root of its own."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

import typer

from pipeline.cli.options import AsJson
from pipeline.engine.stage import Stage, Workspace
from pipeline.errors import CiteloomError
from pipeline.settings import load_settings

if TYPE_CHECKING:
    from pipeline.ops.run_months import RunReport
    from pipeline.wikipedia.dump import Dump

Until = Literal["metadata", "papers", "passages", "embeddings", "index_receipts"]


def import_wikipedia(
    files: Annotated[list[Path], typer.Argument(help="Files of an HTML dump (…-ENTERPRISE-HTML.json.tar.gz).")],
    month: Annotated[
        str | None, typer.Option(help="Month of the snapshot (2024-09), where the files' names do not tell it.")
    ] = None,
    until: Annotated[Until, typer.Option(help="Run every stage up to this one, and stop there.")] = "index_receipts",
    force: Annotated[bool, typer.Option(help="Compute again what is up to date.")] = False,
    as_json: AsJson = False,
) -> int:
    """Read a dump of Wikipedia into a data root of its own, for citeloom search and ask --system wikichat."""
    from pipeline.cli.console import out, print_error, print_json, run_table
    from pipeline.wikipedia.dump import open_dump

    report = _import(Workspace(load_settings()), open_dump(files, month), until, force=force)
    failures = [dict(zip(("stage", "month", "message"), failure, strict=True)) for failure in report.failures]
    if as_json:
        print_json({"outcomes": [asdict(outcome) for outcome in report.outcomes], "failures": failures})
        return report.exit_code
    out.print(run_table(report.outcomes))
    if failures:
        named = ", ".join(failure["stage"] for failure in failures)
        print_error(f"{named} failed, as told above; once mended, the same command goes on from there")
    return report.exit_code


def _import(workspace: Workspace, dump: Dump, until: str, *, force: bool) -> RunReport:
    """Run the dump's own stages, then the project's, on the snapshot's month; what came of it."""
    from pipeline.cli.console import showing
    from pipeline.engine import progress
    from pipeline.engine.run import run_stage
    from pipeline.ops.preflight import check, check_data_root
    from pipeline.ops.run_months import RunReport, run_months
    from pipeline.stages import stage_named
    from pipeline.wikipedia.root import claim
    from pipeline.wikipedia.stages import stages_of

    every: list[str] = list(get_args(Until))
    chosen = every[: every.index(until) + 1]
    own: list[Stage] = [stage for stage in stages_of(dump) if stage.name in chosen]
    others = [stage_named(name) for name in chosen[2:]]
    check_data_root(workspace)
    claim(workspace, dump.month)
    check(workspace, others)
    report = RunReport()
    with showing(steps=len(chosen)):
        with progress.listening(report), suppress(CiteloomError):  # the report has been told of it
            for stage in own:
                run_stage(stage, workspace, dump.month, force=force)
        if report.failures:
            return report
        after = run_months(workspace, [dump.month], others, force=force)
    report.outcomes += after.outcomes
    report.failures += after.failures
    report.exit_code = max(report.exit_code, after.exit_code)
    return report
