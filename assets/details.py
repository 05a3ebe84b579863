"""Metadata of a finished month for the UI, besides its outcome: numbers, a table, a figure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

import dagster as dg

from assets.rendering import Interval, intervals, markdown_table
from pipeline import tables
from pipeline.corpus.passages.packing import length_histogram
from pipeline.engine.stage import Workspace
from pipeline.evaluation.g_score.sample import MAIN
from pipeline.report import page_of_month
from pipeline.tables.writers import writer_name

if TYPE_CHECKING:
    from pipeline.report.frames import RelatedWork

_PLOTTED = {"rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeLsum": "ROUGE-L", "g_score": "G-Score"}
_SHARES = {"citation_precision": "citation precision", "citation_recall": "citation recall"}
_MARKS = 5


def page_figures(workspace: Workspace, month: str) -> Mapping[str, Any]:
    """The number of pages of each subset of the dump."""
    subsets = workspace.root.read(tables.DUMP_MEMBERS, month, ["subset"])["subset"].to_pylist()
    return {f"pages/{subset}": count for subset, count in sorted(Counter(subsets).items())}


def paper_figures(workspace: Workspace, month: str) -> Mapping[str, Any]:
    """The share of visible characters kept, papers by grade, characters lost by element."""
    papers = workspace.root.rows(
        tables.PAPERS, month, ["chars_seen", "chars_kept", "losses", "grade"]
    )
    chars_seen = sum(paper["chars_seen"] for paper in papers)
    chars_kept = sum(paper["chars_kept"] for paper in papers)
    grades = Counter(str(paper["grade"]) for paper in papers)
    losses: Counter[str] = Counter()
    for paper in papers:
        losses.update(paper["losses"])
    figures: dict[str, Any] = {}
    if chars_seen:
        figures["share_kept"] = round(chars_kept / chars_seen, 4)
    figures |= {f"grade/{grade}": count for grade, count in sorted(grades.items())}
    figures |= {f"lost/{kind}": count for kind, count in losses.most_common()}
    return figures


def passage_figures(workspace: Workspace, month: str) -> Mapping[str, Any]:
    """The median length in words, passages by kind, and the histogram of lengths."""
    columns = workspace.root.read(tables.PASSAGES, month, ["words", "kind"])
    if not len(columns):
        return {}
    kinds = Counter(columns["kind"].to_pylist()).most_common()
    histogram = length_histogram(columns["words"]).items()
    shares = {f"{name} words": count / len(columns) for name, count in histogram}
    picture = intervals(
        "passage lengths",
        {name: (share, 0.0, share) for name, share in shares.items()},
        title=f"{month}: {len(columns):,} passages by length, shares",
    )
    return {
        "median_words": median(columns["words"].to_pylist()),
        **{f"kind/{kind}": count for kind, count in kinds},
        "picture": dg.MetadataValue.md(picture),
    }


def score_means(workspace: Workspace, month: str) -> Mapping[str, Any]:
    """Mean ROUGE and G-Score of each writer, under names that the UI plots over months.

    A G-Score is the mean of all judges, and names its candidate set but for the main one.
    """
    columns = ["metric", "candidate_set", "system", "model", "repeat", "value"]
    values: dict[str, list[float]] = defaultdict(list)
    for row in workspace.root.iterate(tables.SCORES, month, columns):
        if row["metric"] in _PLOTTED and row["value"] is not None and row["repeat"] == 0:
            name = f"{_PLOTTED[row['metric']]}/{writer_name(row)}"
            if row["candidate_set"] not in (None, MAIN):
                name += f" in {row['candidate_set']}"
            values[name].append(row["value"])
    return {name: round(fmean(values[name]), 4) for name in sorted(values)}


def report_details(workspace: Workspace, month: str) -> Mapping[str, Any]:
    """The report's file, its systems' main figures, and a picture with intervals."""
    from pipeline.report.formatting import words
    from pipeline.report.frames import read_report
    from pipeline.report.related_work import leaderboard

    figures = read_report(workspace, [month]).related
    page = page_of_month(workspace.root, month)
    details: dict[str, Any] = {"page": dg.MetadataValue.path(str(page))}
    if figures.systems:
        grid = leaderboard(figures)
        table = markdown_table(grid.columns, [[cell.plain() for cell in row] for row in grid.rows])
        details["systems"] = dg.MetadataValue.md(f"{grid.about}\n\n{table}")
        bars = {
            f"{figure}, {words(system)}": interval
            for system in figures.systems
            for figure, interval in _figures_of(figures, system).items()
        }
        if bars:
            title = f"{month}: {figures.tasks:,} related-work tasks, 95 % intervals"
            picture = intervals("systems", bars, title=f"{title}, shares")
            details["picture"] = dg.MetadataValue.md(picture)
    return details


def _figures_of(figures: RelatedWork, system: str) -> dict[str, Interval]:
    """A system's G-Score as a share of the highest mark, and its measured citation support."""
    intervals_by_name: dict[str, Interval] = {}
    for metric, name in {"g_score": "G-Score of 5", **_SHARES}.items():
        mean = figures.scores_of(system).mean(system, metric)
        if mean.value is None:
            continue
        scale = _MARKS if metric == "g_score" else 1
        low = None if mean.low is None else mean.low / scale
        high = None if mean.high is None else mean.high / scale
        intervals_by_name[name] = (mean.value / scale, low, high)
    return intervals_by_name


DETAILS: Mapping[str, Callable[[Workspace, str], Mapping[str, Any]]] = {
    "dump_members": page_figures,
    "papers": paper_figures,
    "passages": passage_figures,
    "scores": score_means,
    "report": report_details,
}
"""Details of the months of a stage, by its name."""
