"""The measures that tables of reports show, and the figures that the two papers print.

The tables of related work, the leaderboard, the figures and the page of a task all take title, form
and direction of a measure from here.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from pipeline.evaluation.statistics import Estimate
from pipeline.report.data import RelatedWorkData
from pipeline.report.formatting import criterion_name, month_range, number_of, words
from pipeline.report.grid import Best, Cell, Column, Form, Grid, RowGroup, mean_cell, table
from pipeline.tables import CRITERIA

_PUBLISHED = Path(__file__).parent / "published"


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure of a section, as reports show it.

    metric: its name in the table `scores`. form: of its value times `scale`. group: the heading
    that it is under on the page of a task, which lacks it without one. short: its title in the
    table of its group. axis: the end of its axis in figures.
    """

    metric: str
    title: str
    form: Form
    group: str = ""
    short: str = ""
    best: Best = "highest"
    scale: float = 1
    axis: float = 1

    def cell(self, mean: Estimate | None) -> Cell:
        """A mean of the measure, with its interval."""
        return mean_cell(mean, self.form, self.scale)

    def difference(self, mean: Estimate | None) -> Cell:
        """A difference in the measure, of shares in percentage points."""
        return mean_cell(mean, "two", 100 if self.form == "percent" else self.scale)


ROUGE, MARKS, CITATIONS, FORMAT = (
    "ROUGE",
    "G-Score",
    "Citations",
    "Citation format and length",
)
CRITERIA_MEASURES = [
    Measure(f"g_{criterion}", criterion_name(criterion), "two", MARKS, axis=5)
    for criterion in CRITERIA
]
G_SCORE = Measure("g_score", "G-Score", "two", MARKS, axis=5)
ROUGE_1 = Measure("rouge1", "R-1", "two", ROUGE, axis=60)
MEASURES = [
    ROUGE_1,
    Measure("rouge2", "R-2", "two", ROUGE, axis=60),
    Measure("rougeLsum", "R-L by sentence", "two", ROUGE, axis=60),
    Measure("rougeL", "R-L of the whole", "two", ROUGE, axis=60),
    *CRITERIA_MEASURES,
    G_SCORE,
    Measure("g_vote", "Best, %", "two", MARKS, scale=100),
    Measure("citation_precision", "Citation precision", "percent", CITATIONS, "Precision"),
    Measure("citation_precision_partly", "Precision, partly as half", "percent"),
    Measure("citation_precision_quoted", "Precision, quote found", "percent"),
    Measure("citation_recall", "Citation recall", "percent", CITATIONS, "Recall"),
    Measure("reference_coverage", "Coverage", "percent", FORMAT),
    Measure("retention", "Retention", "percent", FORMAT),
    Measure("citation_exact", "Exact format", "percent", FORMAT),
    Measure("citation_out_of_range", "Out of range", "one", FORMAT, best="lowest"),
    Measure("words", "Words", "count", FORMAT, best=""),
]


def select(*metrics: str) -> list[Measure]:
    """Measures by the names of their metrics."""
    by_metric = {measure.metric: measure for measure in MEASURES}
    return [by_metric[metric] for metric in metrics]


TABLE_MEASURES = select("rouge1", "rouge2", "rougeLsum", "rougeL", "g_score", "g_vote")
"""Of the ChatCite paper's Tables 1 and 2; the paper has no R-L of the whole."""
MAIN_MEASURES = select(
    "g_score", "rouge1", "rouge2", "rougeLsum", "citation_precision", "citation_recall"
)
"""Of the leaderboard and of differences."""
CITATION_MEASURES = select(
    "citation_precision",
    "citation_precision_partly",
    "citation_precision_quoted",
    "citation_recall",
    "reference_coverage",
    "retention",
    "citation_exact",
    "citation_out_of_range",
)
STABILITY_MEASURES = [G_SCORE, *CRITERIA_MEASURES, ROUGE_1, *select("reference_coverage")]


@cache
def published(paper: Literal["chatcite", "arxivbot"]) -> list[dict[str, str]]:
    """The figures that a paper prints, row by row of its tables: ChatCite (arXiv 2403.02574v1,
    Tables 1 and 2) by metric, and the arXivBot report (Table 1) in percent.
    """
    with (_PUBLISHED / f"{paper}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@dataclass(frozen=True, slots=True)
class MeasuredRow:
    """A row of a table of measures. cells: metric → value. tasks: over how many it is."""

    system: str
    model: str
    cells: Mapping[str, Cell]
    tasks: int


def measured_rows(
    data: RelatedWorkData, systems: Iterable[str], measures: Sequence[Measure]
) -> list[MeasuredRow]:
    """The means of systems over their tasks."""
    return [
        MeasuredRow(
            words(system),
            data.model_of(system),
            mean_cells(data, system, measures),
            data.sections[system],
        )
        for system in systems
    ]


def mean_cells(data: RelatedWorkData, system: str, measures: Sequence[Measure]) -> dict[str, Cell]:
    """Metric → the mean of a system over its tasks."""
    return {
        measure.metric: measure.cell(data.scores.mean(system, measure.metric))
        for measure in measures
    }


def measure_table(
    key: str,
    title: str,
    measures: Sequence[Measure],
    groups: Sequence[RowGroup],
    *,
    models: bool,
    about: str = "",
    notes: Sequence[str] = (),
    sortable: bool = False,
) -> Grid:
    """A table with a column for each measure. groups: of `MeasuredRow`. models: whether it has a
    column of them.
    """
    columns: list[Column[MeasuredRow]] = [Column("System", lambda row: row.system)]
    if models:
        columns.append(Column("Model", lambda row: row.model))
    columns += map(_column, measures)
    columns.append(Column("Tasks", lambda row: row.tasks))
    return table(key, title, columns, groups=groups, about=about, notes=notes, sortable=sortable)


def _column(measure: Measure) -> Column[MeasuredRow]:
    return Column(
        measure.title, lambda row: row.cells.get(measure.metric), measure.form, measure.best
    )


def basis(data: RelatedWorkData, judges: str | None = None) -> str:
    """What our rows rest on: data and judge, which is that of the G-Score unless others are
    given.
    """
    judges = data.scores.judge if judges is None else judges
    judged = f"judge {judges}" if judges else "nothing was judged"
    small = (
        f"; not a measure of the methods, as {data.small_model} wrote or judged"
        if data.small_model
        else ""
    )
    return f"{number_of(data.tasks, 'task')} of {month_range(data.months)}; {judged}{small}"
