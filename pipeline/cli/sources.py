"""The commands that bring in papers: `citeloom harvest`, `fetch-html` and `import-wikipedia`."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

import typer

from pipeline.cli.common import AsJson, AsJsonNotText, check_file, open_workspace, split_names
from pipeline.errors import CiteloomError, SettingError

if TYPE_CHECKING:
    from pipeline.engine.stage import Workspace
    from pipeline.ops.run_months import RunReport
    from pipeline.wikipedia.dump import Dump

Until = Literal["metadata", "papers", "passages", "embeddings", "index_receipts"]


def harvest(
    first: Annotated[
        str | None,
        typer.Option("--from", metavar="DAY", help="First day (2026-11-01); by default where the last harvest ended."),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Fetch the metadata of papers that changed at arXiv since the last harvest.

    Examples:
      citeloom harvest
      citeloom harvest --from 2026-11-01
    """
    from pipeline.arxiv.harvest import harvest as harvest_metadata
    from pipeline.cli.console import out, print_json, showing

    workspace = open_workspace()
    with showing(workspace.root):
        report = harvest_metadata(workspace.settings, workspace, since=first)
    if as_json:
        print_json(asdict(report))
    else:
        out.print(str(report), soft_wrap=True)
    return 0


def fetch_html(
    month: Annotated[str | None, typer.Option(help="Month of the papers to fetch (2026-10).")] = None,
    ids: Annotated[str, typer.Option(metavar="ID,…", help="Fetch only these papers: arXiv ids, comma-separated.")] = "",
    limit: Annotated[int | None, typer.Option(metavar="N", min=1, help="Request at most this many papers.")] = None,
    again: Annotated[bool, typer.Option(help="Request papers again that had no page before.")] = False,
    accept_terms: Annotated[
        bool, typer.Option("--accept-terms", help="Accept arXiv's terms, which the command prints without this.")
    ] = False,
    as_json: AsJsonNotText = False,
) -> int:
    """Fetch HTML pages that the dump lacks from arXiv's site, at its rate limit, into the dump's folder.

    Examples:
      citeloom fetch-html --month 2026-10 --accept-terms
      citeloom fetch-html --ids 2610.01234,2610.04321 --accept-terms
    """
    from pipeline.cli.console import out, print_json, showing
    from pipeline.corpus.fetch_selection import TERMS, select_papers
    from pipeline.corpus.fetching import fetch

    workspace = open_workspace()
    if not accept_terms:
        raise SettingError(TERMS)
    with showing(workspace.root):
        report = fetch(workspace, select_papers(workspace, month, split_names(ids)), limit=limit, again=again)
    if as_json:
        print_json(asdict(report))
    else:
        out.print(str(report), soft_wrap=True, markup=False)
    return 0


def import_wikipedia(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILES...", help="Files of a dump (…-ENTERPRISE-HTML.json.tar.gz).")
    ],
    month: Annotated[
        str | None, typer.Option(help="Month of the snapshot (2024-09), if the names of the files lack it.")
    ] = None,
    until: Annotated[
        Until,
        typer.Option(
            metavar="STAGE",
            help="Run the stages up to and including this one: metadata, papers, passages, embeddings or "
            "index_receipts.",
        ),
    ] = "index_receipts",
    force: Annotated[bool, typer.Option(help="Compute again what is up to date.")] = False,
    as_json: AsJson = False,
) -> int:
    """Read files of a Wikipedia HTML dump into a data root of its own, for search and ask --system wikichat.

    Examples:
      CITELOOM_DATA=wiki citeloom import-wikipedia enwiki-*.json.tar.gz
      CITELOOM_DATA=wiki citeloom import-wikipedia w.tar.gz --month 2024-09
    """
    for file in files:
        check_file("FILES", file)

    from pipeline.cli.console import out, print_error, print_json, run_table
    from pipeline.wikipedia.dump import open_dump

    report = _import(open_workspace(), open_dump(files, month), until, force=force)
    failures = [dict(zip(("stage", "month", "message"), failure, strict=True)) for failure in report.failures]
    if as_json:
        print_json({"outcomes": [asdict(outcome) for outcome in report.outcomes], "failures": failures})
        return report.exit_code
    out.print(run_table(report.outcomes))
    if failures:
        stages = ", ".join(failure["stage"] for failure in failures)
        print_error(f"{stages} failed, see above; once this is corrected, the same command continues from there")
    return report.exit_code


def _import(workspace: Workspace, dump: Dump, until: str, *, force: bool) -> RunReport:
    """Run the stages that read the dump, then those that arXiv's papers go through too, on the snapshot's month."""
    from pipeline.cli.console import showing
    from pipeline.engine import progress
    from pipeline.engine.run import run_stage
    from pipeline.ops.preflight import check, check_data_root
    from pipeline.ops.run_months import RunReport, run_months
    from pipeline.stages import stage_named
    from pipeline.wikipedia.root import claim
    from pipeline.wikipedia.stages import stages_of

    names: list[str] = list(get_args(Until))
    selected = names[: names.index(until) + 1]
    dump_stages = [stage for stage in stages_of(dump) if stage.name in selected]
    shared_stages = [stage_named(name) for name in selected[2:]]
    check_data_root(workspace)
    claim(workspace, dump.month)
    check(workspace, shared_stages)
    report = RunReport()
    with showing(workspace.root):
        progress.planned([dump.month], selected)
        with progress.listening(report), suppress(CiteloomError):  # the report, which listens, has the failure
            for stage in dump_stages:
                run_stage(stage, workspace, dump.month, force=force)
        if report.failures:
            return report
        report.add(run_months(workspace, [dump.month], shared_stages, force=force))
    return report
