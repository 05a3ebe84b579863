"""The measures of `measures.toml`, tables of them, and the figures that the two papers print."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pipeline.evaluation.statistics import Estimate
from pipeline.report.formatting import FEW, month_range
from pipeline.report.frames import NO_MODEL, Scores, Writings
from pipeline.report.grid import Cell, Form, Grid, RowGroup, mean_cell
from pipeline.tables import CRITERIA
from pipeline.text import number_of

_FOLDER = Path(__file__).parent
CRITERIA_METRICS = tuple(f"g_{criterion}" for criterion in CRITERIA)


@dataclass(frozen=True, slots=True)
class Measure:
    """A column of numbers, as `measures.toml` describes it.

    metric: its name in `scores`, or among the measures of answers. short: its title where the
    table's subject says the rest. form: of the value times `scale`. best: the value in bold. axis:
    the end of its axis in figures. means: its definition.
    """

    metric: str
    title: str
    form: Form
    short: str = ""
    best: Literal["highest", "lowest", ""] = "highest"
    scale: float = 1
    axis: float = 1
    means: str = ""

    def cell(self, mean: Estimate | None) -> Cell:
        """A mean of the measure, with its interval."""
        return mean_cell(mean, self.form, self.scale)

    def difference(self, mean: Estimate | None) -> Cell:
        """A difference in the measure, of shares in percentage points."""
        return mean_cell(mean, "two", 100 if self.form == "percent" else self.scale)

    def parse(self, printed: str) -> float:
        """A value as the papers print it: shares in percent."""
        if self.form == "count":
            return int(printed)
        return float(printed) / 100 if self.form == "percent" else float(printed)


@cache
def measures() -> Mapping[str, Measure]:
    """All measures by metric."""
    with (_FOLDER / "measures.toml").open("rb") as file:
        return {metric: Measure(metric, **fields) for metric, fields in tomllib.load(file).items()}


def select(*metrics: str) -> list[Measure]:
    """Measures by the names of their metrics."""
    return [measures()[metric] for metric in metrics]


def with_short_titles(chosen: Iterable[Measure]) -> list[Measure]:
    """Measures as a table names them whose subject says the rest."""
    return [replace(measure, title=measure.short or measure.title) for measure in chosen]


@dataclass(frozen=True, slots=True)
class MeasuredRow:
    """A row of a table of measures. cells: metric → a cell, or a plain value."""

    label: str
    cells: Mapping[str, Any]
    model: str = ""


def measure_table(
    key: str,
    title: str,
    chosen: Sequence[Measure],
    rows: Sequence[MeasuredRow] = (),
    *,
    groups: Sequence[RowGroup] = (),
    about: str = "",
    notes: Sequence[str] = (),
    sortable: bool = False,
) -> Grid:
    """A table with a column for each measure that rows have, and for models where rows have any.

    groups: of measured rows, those without rows left out.
    """
    groups = [group for group in groups or [RowGroup(rows)] if group.rows]
    all_rows = [row for group in groups for row in group.rows]
    chosen = [
        measure
        for measure in chosen
        if any(_cell(measure, row).value is not None for row in all_rows)
    ]
    models = any(row.model for row in all_rows)
    filled = []
    for group in groups:
        columns = zip(*(_column(measure, group.rows) for measure in chosen), strict=True)
        heads = [[row.label, row.model] if models else [row.label] for row in group.rows]
        rendered = [[*head, *cells] for head, cells in zip(heads, columns, strict=True)]
        filled.append(replace(group, rows=rendered))
    titles = ["System", *(["Model"] if models else []), *(measure.title for measure in chosen)]
    definitions = [f"{item.title}: {item.means}" for item in chosen if item.means]
    return Grid(
        key,
        title,
        titles,
        groups=filled,
        about=about,
        notes=notes,
        sortable=sortable,
        definitions=definitions,
    )


def _cell(measure: Measure, row: MeasuredRow) -> Cell:
    value = row.cells.get(measure.metric)
    return value if isinstance(value, Cell) else Cell(value, measure.form)


def _column(measure: Measure, rows: Iterable[MeasuredRow]) -> list[Cell]:
    """The cells of a measure, the best one marked."""
    cells = [_cell(measure, row) for row in rows]
    numbers = [cell.value for cell in cells if isinstance(cell.value, int | float)]
    if not measure.best or len(set(numbers)) < 2:
        return cells
    best = max(numbers) if measure.best == "highest" else min(numbers)
    return [replace(cell, best=cell.value == best) for cell in cells]


def published_rows(
    paper: Literal["chatcite", "arxivbot"], table: str, chosen: Sequence[Measure]
) -> list[MeasuredRow]:
    """The rows of a table as a paper prints it: ChatCite (arXiv 2403.02574v1, Tables 1 and 2), or
    the arXivBot report (Table 1).
    """
    with (_FOLDER / "published" / f"{paper}.csv").open(newline="") as file:
        printed = [row for row in csv.DictReader(file) if row["table"] == table]
    return [
        MeasuredRow(
            row["system"],
            {item.metric: item.parse(row[item.metric]) for item in chosen if item.metric in row},
            row["model"],
        )
        for row in printed
    ]


def mean_cells(scores: Scores, system: str, chosen: Iterable[Measure]) -> dict[str, Any]:
    """Metric → the mean of a system over its tasks or questions."""
    return {item.metric: item.cell(scores.mean(system, item.metric)) for item in chosen}


def best_first(scores: Scores, systems: Iterable[str], metric: str) -> list[str]:
    """Systems, the highest mean first."""
    means = {system: scores.mean(system, metric).value or 0.0 for system in systems}
    return sorted(means, key=lambda system: (-means[system], system))


def leader_card(
    title: str, writings: Writings, scores: Scores, ranked: Sequence[str], measure: Measure
) -> tuple[str, str, str]:
    """Which system is ahead, the means of the first two with their intervals, and whether the judge
    wrote too.

    ranked: the highest mean first. Nothing is ahead where the two intervals overlap, or where no
    system calls a model.
    """
    names = {system: writings.title_of(system) for system in ranked}
    means = [scores.mean(system, measure.metric) for system in ranked[:2]]
    remark = "; ".join(
        f"{names[system]} {measure.cell(mean).plain()}"
        for system, mean in zip(ranked, means, strict=False)
    )
    served = writings.served_as
    judge = served.get(scores.judge, scores.judge)
    if any(served.get(model, model) == judge for model in map(writings.model_of, ranked)):
        remark += f". The judge is the same model as the writer: {judge}."
    first = ranked[0]
    value = f"{names[first]}{', a baseline' if writings.model_of(first) == NO_MODEL else ''}"
    if all(writings.model_of(system) == NO_MODEL for system in ranked):
        value = "Only baselines ran"
    elif len(means) > 1 and (means[0].low or 0.0) <= (means[1].high or means[1].value or 0.0):
        value = "None is clearly ahead"
    return title, value, f"{measure.title}: {remark}"


def basis(writings: Writings, items: str, judges: str, judged: str = "judged") -> str:
    """The basis of our rows: tasks or questions, months and judge."""
    small = writings.small_model
    hint = f"; not a measure of the methods, as {small} wrote or {judged}" if small else ""
    judge = f"judge {judges}" if judges else f"nothing was {judged}"
    return f"{items} of {month_range(writings.months)}; {judge}{hint}"


def interval_notes(items: int, noun: str) -> list[str]:
    """Notes on the intervals of means, with a warning for few tasks or questions."""
    notes = [f"Small numbers below a mean are its 95 % bootstrap interval over {noun}s."]
    if 1 < items < FEW:
        count = number_of(items, noun)
        notes.append(f"With {count} the intervals are too narrow: differences are only hints.")
    return notes
