"""The commands that bring in papers: `citeloom harvest`, `convert` and `fetch-html`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from pipeline.doors.cli.common import (
    AsJson,
    MonthsOption,
    open_workspace,
    split_names,
)
from pipeline.errors import SettingError


def harvest(
    first: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="DAY",
            help="First day (2026-11-01); by default where the last harvest ended.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Fetch the metadata of papers that changed at arXiv since the last harvest.

    Examples:
      citeloom harvest
      citeloom harvest --from 2026-11-01
    """
    from pipeline.arxiv.harvest import harvest as harvest_metadata
    from pipeline.doors.cli.console import out, print_json, showing

    workspace = open_workspace()
    with showing():
        report = harvest_metadata(workspace, since=first)
    if as_json:
        print_json(asdict(report))
    else:
        out.print(str(report), soft_wrap=True)
    return 0


def convert(
    months: MonthsOption = "all",
    as_json: AsJson = False,
) -> int:
    """Convert the sources in CITELOOM_SOURCES into pages of the dump, by LaTeXML or latexml-oxide
    in a sandbox.

    Examples:
      citeloom convert
      citeloom convert --months 2026-10
    """
    from pipeline.corpus.sources.archives import months_of_sources
    from pipeline.corpus.sources.stage import PAGES
    from pipeline.doors.cli.run import run_and_report, show_run
    from pipeline.identity.months import select_months

    workspace = open_workspace()
    disabled = PAGES.disabled_reason(workspace.settings)
    if disabled:
        raise SettingError(f"{disabled}: set it")
    of_sources = months_of_sources(workspace.settings.sources)
    report = run_and_report(workspace, select_months(months, of_sources), [PAGES])
    show_run(workspace, report, as_json=as_json)
    return report.exit_code


def fetch_html(
    month: Annotated[
        str | None, typer.Option(help="Month of the papers to fetch (2026-10).")
    ] = None,
    ids: Annotated[
        str,
        typer.Option(metavar="ID,…", help="Fetch only these papers: arXiv ids, comma-separated."),
    ] = "",
    limit: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Request at most this many papers.")
    ] = None,
    again: Annotated[
        bool, typer.Option(help="Request papers again that had no page before.")
    ] = False,
    accept_terms: Annotated[
        bool,
        typer.Option(
            "--accept-terms", help="Accept arXiv's terms, which the command prints without this."
        ),
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Fetch HTML pages that the dump lacks from arXiv's site, at its rate limit, into the dump's
    folder.

    Examples:
      citeloom fetch-html --month 2026-10 --accept-terms
      citeloom fetch-html --ids 2610.01234,2610.04321 --accept-terms
    """
    from pipeline.corpus.fetching import TERMS, fetch, select_papers
    from pipeline.doors.cli.console import out, print_json, showing

    workspace = open_workspace()
    if not accept_terms:
        raise SettingError(TERMS)
    with showing():
        report = fetch(
            workspace, select_papers(workspace, month, split_names(ids)), limit=limit, again=again
        )
    if as_json:
        print_json(asdict(report))
    else:
        out.print(str(report), soft_wrap=True, markup=False)
    return 0
