"""The command `citeloom fetch-html`: pages of new months from arXiv's site."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from pipeline.cli.options import AsJsonNotText
from pipeline.engine.stage import Workspace
from pipeline.errors import SettingError
from pipeline.settings import load_settings


def fetch_html(
    month: Annotated[str | None, typer.Option(help="Month whose papers are fetched (2026-10).")] = None,
    ids: Annotated[str, typer.Option(help="These papers alone, by arXiv id, with commas between.")] = "",
    limit: Annotated[int | None, typer.Option(min=1, help="Ask for this many papers at most.")] = None,
    again: Annotated[bool, typer.Option(help="Ask also for papers that had no page before.")] = False,
    accept_terms: Annotated[
        bool, typer.Option("--accept-terms", help="Accept arXiv's terms, which the command tells without this.")
    ] = False,
    as_json: AsJsonNotText = False,
) -> int:
    """Fetch pages of papers that the dump lacks from arXiv's own site, at its pace, into the dump's folder."""
    from pipeline.cli.console import out, print_json, showing
    from pipeline.corpus.fetching.fetch import fetch
    from pipeline.corpus.fetching.terms import TERMS
    from pipeline.corpus.fetching.wanted import choose

    settings = load_settings()
    if not accept_terms:
        raise SettingError(TERMS)
    workspace = Workspace(settings)
    named = [name.strip() for name in ids.split(",") if name.strip()]
    with showing(steps=1):
        report = fetch(workspace, choose(workspace, month, named), limit=limit, again=again)
    if as_json:
        print_json(asdict(report))
    else:
        out.print(str(report), soft_wrap=True, markup=False)
    return 0
