"""The measures that tables of reports show, and the figures that the two papers print.

Title, form and direction of a measure are the same in every table, and one function renders all
tables of measures.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pipeline.evaluation.statistics import Estimate
from pipeline.report.data import RelatedWorkData, Scores
from pipeline.report.formatting import criterion_name, month_range, words
from pipeline.report.grid import Cell, Form, Grid, RowGroup, mean_cell
from pipeline.tables import CRITERIA
from pipeline.text import number_of

_PUBLISHED = Path(__file__).parent / "published"


@dataclass(frozen=True, slots=True)
class Measure:
    """A column of numbers.

    metric: its name in `scores`, or among the measures of answers. form: of its value times
    `scale`. group: the heading that it is under on the page of a task, which lacks
    it without one. short: its title in the table of its group. best: which value is emphasised in
    each group of rows, unless all are equal. axis: the end of its axis in figures.
    """

    metric: str
    title: str
    form: Form
    group: str = ""
    short: str = ""
    best: Literal["highest", "lowest", ""] = "highest"
    scale: float = 1
    axis: float = 1

    def cell(self, mean: Estimate | None) -> Cell:
        """A mean of the measure, with its interval."""
        return mean_cell(mean, self.form, self.scale)

    def difference(self, mean: Estimate | None) -> Cell:
        """A difference in the measure, of shares in percentage points."""
        return mean_cell(mean, "two", 100 if self.form == "percent" else self.scale)

    def is_in(self, row: MeasuredRow) -> bool:
        """Whether a row has a value of the measure."""
        value = row.cells.get(self.metric)
        return value is not None and (not isinstance(value, Cell) or value.value is not None)

    def parse(self, printed: str) -> float:
        """A value as the papers print it: shares in percent."""
        if self.form == "count":
            return int(printed)
        return float(printed) / 100 if self.form == "percent" else float(printed)


ROUGE, MARKS, CITATIONS, FORMAT = (
    "ROUGE",
    "G-Score",
    "Citations",
    "Citation format and length",
)
ROUGE_1 = Measure("rouge1", "R-1", "two", ROUGE, axis=60)
G_SCORE = Measure("g_score", "G-Score", "two", MARKS, axis=5)
CRITERIA_MEASURES = [
    Measure(f"g_{criterion}", criterion_name(criterion), "two", MARKS, axis=5)
    for criterion in CRITERIA
]
MEASURES = [
    # Of sections.
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
    Measure("tasks", "Tasks", "count", best=""),
    Measure("cut", "Cut", "count", best=""),
    Measure("cites nothing", "Cites nothing", "count", best=""),
    Measure("repeats its prompt", "Repeats its prompt", "count", best=""),
    Measure("failed", "Failed", "count", best=""),
    # Of answers.
    Measure("factual", "Factual", "percent"),
    Measure("coverage", "Coverage", "percent"),
    Measure("factual_old", "Factual, old", "percent"),
    Measure("coverage_old", "Coverage, old", "percent"),
    Measure("factual_recent", "Factual, recent", "percent"),
    Measure("coverage_recent", "Coverage, recent", "percent"),
    Measure("factual_all", "Factual, all", "percent"),
    Measure("coverage_all", "Coverage, all", "percent"),
    Measure("gold_shown_first_hop", "Shown by the first hop", "percent"),
    Measure("gold_shown", "Shown by the last hop", "percent", short="Gold passages shown"),
    Measure("coverage_of_shown", "Coverage of what was shown", "percent"),
    Measure("claims", "Claims per answer", "one", best=""),
    Measure("answered", "Answered", "count", best=""),
    Measure("abstained", "Abstained", "count", best=""),
    Measure("claims_nothing", "Claims nothing", "count", best=""),
    Measure("unreadable", "Unreadable", "count", best=""),
    Measure("questions", "Questions", "count", best=""),
]


def select(*metrics: str) -> list[Measure]:
    """Measures by the names of their metrics."""
    by_metric = {measure.metric: measure for measure in MEASURES}
    return [by_metric[metric] for metric in metrics]


def with_short_titles(measures: Iterable[Measure]) -> list[Measure]:
    """Measures as the table of their group names them."""
    return [replace(measure, title=measure.short or measure.title) for measure in measures]


@dataclass(frozen=True, slots=True)
class MeasuredRow:
    """A row of a table of measures. cells: metric → a cell, or a plain value."""

    label: str
    cells: Mapping[str, Any]
    model: str = ""


def measure_table(
    key: str,
    title: str,
    measures: Sequence[Measure],
    rows: Sequence[MeasuredRow] = (),
    *,
    groups: Sequence[RowGroup] = (),
    first: str = "System",
    about: str = "",
    notes: Sequence[str] = (),
    sortable: bool = False,
) -> Grid:
    """A table with a column for each measure that rows have, and for models where rows have any.

    groups: of measured rows, those without rows left out. first: the title of the first column.
    """
    groups = [group for group in groups or [RowGroup(rows)] if group.rows]
    all_rows = [row for group in groups for row in group.rows]
    measures = [measure for measure in measures if any(map(measure.is_in, all_rows))]
    models = any(row.model for row in all_rows)
    columns = [first, *(["Model"] if models else []), *(measure.title for measure in measures)]
    filled = []
    for group in groups:
        heads = [[row.label, row.model] if models else [row.label] for row in group.rows]
        values = zip(*(_column(measure, group.rows) for measure in measures), strict=True)
        rendered = [[*head, *cells] for head, cells in zip(heads, values, strict=True)]
        filled.append(replace(group, rows=rendered))
    return Grid(key, title, columns, groups=filled, about=about, notes=notes, sortable=sortable)


def _column(measure: Measure, rows: Iterable[MeasuredRow]) -> list[Cell]:
    """The cells of a measure, the best one marked."""
    values = [row.cells.get(measure.metric) for row in rows]
    cells = [value if isinstance(value, Cell) else Cell(value, measure.form) for value in values]
    numbers = [cell.value for cell in cells if isinstance(cell.value, int | float)]
    if not measure.best or len(set(numbers)) < 2:
        return cells
    best = max(numbers) if measure.best == "highest" else min(numbers)
    return [replace(cell, best=cell.value == best) for cell in cells]


def published_rows(
    paper: Literal["chatcite", "arxivbot"], table: str, measures: Sequence[Measure]
) -> list[MeasuredRow]:
    """The rows of a table as a paper prints it: ChatCite (arXiv 2403.02574v1, Tables 1 and 2), or
    the arXivBot report (Table 1).
    """
    return [
        MeasuredRow(
            row["system"],
            {
                measure.metric: measure.parse(row[measure.metric])
                for measure in measures
                if measure.metric in row
            },
            row["model"],
        )
        for row in _printed(paper)
        if row["table"] == table
    ]


@cache
def _printed(paper: str) -> list[dict[str, str]]:
    with (_PUBLISHED / f"{paper}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def mean_cells(scores: Scores, system: str, measures: Sequence[Measure]) -> dict[str, Any]:
    """Metric → the mean of a system over its tasks."""
    return {
        measure.metric: measure.cell(scores.mean(system, measure.metric)) for measure in measures
    }


def system_rows(
    data: RelatedWorkData,
    systems: Iterable[str],
    measures: Sequence[Measure],
    *,
    scores: Scores | None = None,
    models: bool = True,
) -> list[MeasuredRow]:
    """The means of systems over their tasks. scores: of a candidate set; None for the main one."""
    return [
        MeasuredRow(
            words(system),
            mean_cells(scores or data.scores, system, measures)
            | {"tasks": data.sections[system], **data.states[system]},
            data.model_of(system) if models else "",
        )
        for system in systems
    ]


def basis(data: RelatedWorkData, judges: str | None = None) -> str:
    """The basis of our rows: tasks, months and judge, by default that of the G-Score."""
    judges = data.scores.judge if judges is None else judges
    judged = f"judge {judges}" if judges else "nothing was judged"
    small = (
        f"; not a measure of the methods, as {data.small_model} wrote or judged"
        if data.small_model
        else ""
    )
    return f"{number_of(data.tasks, 'task')} of {month_range(data.months)}; {judged}{small}"
