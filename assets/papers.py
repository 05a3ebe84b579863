"""The asset `papers`, with what its pages lost and how good their text is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg

from assets.shown import bars, histogram, markdown_table, share
from assets.stage_asset import stage_asset
from pipeline import tables
from pipeline.corpus.stages import PAPERS
from pipeline.engine.stage import Workspace
from pipeline.storage.writing import Row

_COLUMNS = ["chars_seen", "chars_kept", "losses", "grade", "grade_reasons"]


def losses_and_grades(workspace: Workspace, month: str) -> Mapping[str, Any]:
    """What the month's pages lost by kind of element, which share of each was kept, and the grades of their text."""
    papers = workspace.root.rows(tables.PAPERS, month, _COLUMNS)
    shown = {
        "losses": _losses(papers, month),
        "share_kept": _share_kept(papers, month),
        "grades": _grades(papers, month),
    }
    return {name: dg.MetadataValue.md(text) for name, text in shown.items()}


def _losses(papers: Sequence[Row], month: str) -> str:
    lost: Counter[str] = Counter()
    pages: Counter[str] = Counter()
    for paper in papers:
        lost.update(paper["losses"])
        pages.update(kind for kind, count in paper["losses"].items() if count)
    seen = sum(paper["chars_seen"] for paper in papers)
    if not lost:
        return "No page lost any text."
    most_first = {kind.replace("_", " "): count for kind, count in lost.most_common()}
    rows = [
        (kind.replace("_", " "), f"{count:,}", share(count, seen), f"{pages[kind]:,}")
        for kind, count in lost.most_common()
    ]
    title = f"characters lost in {month}, of {seen:,} seen"
    picture = bars("losses", most_first, title=title, xlabel="characters")
    return f"{picture}\n\n{markdown_table(('element', 'characters lost', 'of all seen', 'pages'), rows)}"


def _share_kept(papers: Sequence[Row], month: str) -> str:
    shares = [100 * paper["chars_kept"] / paper["chars_seen"] for paper in papers if paper["chars_seen"]]
    # Pages keep nearly all: where the worst keeps 97 %, bars of 1 % each would show but one.
    lowest = min(int(min(shares, default=0)), 99)
    width = (max([100, *shares]) - lowest) / 40
    bins = [lowest + width * step for step in range(40)] + [max([100, *shares])]
    return histogram(
        "share kept",
        shares,
        bins,
        title=f"share of its visible characters that a page of {month} kept",
        xlabel="percent",
        ylabel="papers",
    )


def _grades(papers: Sequence[Row], month: str) -> str:
    found = Counter(str(paper["grade"]) for paper in papers)
    counts = {grade: found[grade] for grade in sorted(found)}
    reasons: dict[str, Counter[str]] = {grade: Counter() for grade in counts}
    for paper in papers:
        reasons[str(paper["grade"])].update(paper["grade_reasons"] or ())
    rows = [(grade, f"{count:,}", share(count, len(papers)), _told(reasons[grade])) for grade, count in counts.items()]
    picture = bars("grades", counts, title=f"grades of the pages of {month}, A (clean) to D (broken)", xlabel="papers")
    return f"{picture}\n\n{markdown_table(('grade', 'papers', 'share', 'lowered for'), rows)}"


def _told(reasons: Counter[str]) -> list[str]:
    return [f"{reason.replace('_', ' ')} {count}" for reason, count in reasons.most_common(3)]


papers = stage_asset(
    PAPERS,
    group="corpus",
    description="Computer-science papers, parsed from pages read in place in the zip, with what each lost.\n\n"
    "Other categories are left out before any HTML is read.",
    kinds=("parquet", "html"),
    extras=losses_and_grades,
)
