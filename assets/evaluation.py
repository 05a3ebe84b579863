"""The assets of evaluation: G-Score, citation support, stability, scores and the report."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from statistics import fmean
from typing import TYPE_CHECKING, Any

import dagster as dg

from assets.rendering import Interval, intervals, markdown_table, report_page
from assets.stage_asset import StageAsset
from pipeline import tables
from pipeline.engine.stage import Workspace
from pipeline.evaluation.judging import TOGETHER
from pipeline.evaluation.stages import CITATION_SUPPORT, G_SCORES, SCORES, STABILITY
from pipeline.report.stages import REPORT
from pipeline.tables.writers import Writer

if TYPE_CHECKING:
    from pipeline.report.related_work_data import RelatedWorkData

_SHARES = {"citation_precision": "citation precision", "citation_recall": "citation recall"}
_MARKS = 5


_PLOTTED = {"rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeLsum": "ROUGE-L", "g_score": "G-Score"}


def score_means(workspace: Workspace, month: str) -> Mapping[str, Any]:
    """Mean ROUGE and G-Score of each writer over the month's tasks, each under a name that the UI plots over months.

    A G-Score is the mean of all judges that marked the systems of a task together.
    """
    columns = ["metric", "mode", "system", "model", "value"]
    values: dict[str, list[float]] = defaultdict(list)
    for row in workspace.root.iterate(tables.SCORES, month, columns):
        marked_alone = row["metric"] == "g_score" and row["mode"] != TOGETHER
        if row["metric"] in _PLOTTED and row["value"] is not None and not marked_alone:
            values[f"{_PLOTTED[row['metric']]}/{Writer(row['system'], row['model']).name}"].append(row["value"])
    means = {name: round(fmean(values[name]), 4) for name in sorted(values)}
    if not means:
        return {}
    table = markdown_table(("metric/system", "mean"), [(name, f"{value:.3f}") for name, value in means.items()])
    return {**means, "means": dg.MetadataValue.md(table)}


def report_details(workspace: Workspace, month: str) -> Mapping[str, Any]:
    """Where the month's report lies, its systems' main figures, and a picture of them with their intervals."""
    from pipeline.report.formatting import words
    from pipeline.report.publish import read_month_related_work
    from pipeline.report.related_work_tables import leaderboard

    figures = read_month_related_work(workspace, month)
    details: dict[str, Any] = {**report_page(workspace, f"{month}/index.html")}
    if figures.systems:
        grid = leaderboard(figures)
        table = markdown_table(grid.columns, [[cell.plain() for cell in row] for row in grid.rows])
        details["systems"] = dg.MetadataValue.md(f"{grid.about}\n\n{table}")
        by_system = {words(system): _figures_of(figures, system) for system in figures.systems}
        if any(by_system.values()):
            title = f"{month}: {figures.tasks:,} related-work tasks, 95 % intervals"
            picture = intervals("systems", by_system, title=f"{title}, shares")
            details["picture"] = dg.MetadataValue.md(picture)
    return details


def _figures_of(figures: RelatedWorkData, system: str) -> dict[str, Interval]:
    """A system's G-Score as a share of the highest mark, and its citation support; only those that were measured."""
    mark = figures.scores.mean(system, "g_score")
    value, low, high = (None if figure is None else figure / _MARKS for figure in (mark.value, mark.low, mark.high))
    values = {"G-Score of 5": (value, low, high)}
    for metric, name in _SHARES.items():
        mean = figures.scores.mean(system, metric)
        values[name] = (mean.value, mean.low, mean.high)
    return {name: (value, low, high) for name, (value, low, high) in values.items() if value is not None}


EVALUATION = (
    StageAsset(
        G_SCORES,
        "evaluation",
        "The G-Score: six marks and a vote, all systems of a task in one conversation as the paper has it; and what "
        "the paper did not ask: other orders, one by one, a second judge.",
        kinds=("parquet", "openai"),
    ),
    StageAsset(
        CITATION_SUPPORT,
        "evaluation",
        "Whether a cited work says what the citing sentence claims: a verdict with the words it rests on.",
        kinds=("parquet", "openai"),
    ),
    StageAsset(
        STABILITY,
        "evaluation",
        "ChatCite with and without reflection, written again with other samples and in other orders of references. "
        "Without rows unless CITELOOM_STABILITY_TASKS says on how many tasks.",
        kinds=("parquet", "openai"),
    ),
    StageAsset(
        SCORES,
        "evaluation",
        "Every metric of every system on each task: ROUGE against the gold section, G-Score, citations.",
        details=score_means,
    ),
    StageAsset(
        REPORT,
        "evaluation",
        "The month's report: a static folder of pages that works from disk.",
        kinds=("html",),
        details=report_details,
    ),
)
