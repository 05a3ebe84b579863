"""Related work of one or several months, read from the tables for a report."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from pipeline import tables
from pipeline.evaluation.g_score.measures import named_judgement
from pipeline.evaluation.g_score.people_measures import (
    RATING_COLUMNS,
    RatingResults,
    current_ratings,
    rating_results,
)
from pipeline.evaluation.g_score.sample import TOGETHER
from pipeline.evaluation.statistics import Estimate, estimate
from pipeline.llm.messages import Prices
from pipeline.report.costs import USAGE, Cost
from pipeline.report.month_data import MonthData, Row, preferred_first, read_or_empty, writer_names
from pipeline.storage.data_root import DataRoot
from pipeline.storage.provenance import read_provenance
from pipeline.system_names import RELATED_WORK_SYSTEMS
from pipeline.tables import Table
from pipeline.tables.writers import with_writer_names

MonthTables = Mapping[str, pa.Table]
"""Name of a table → its rows of a month."""

_SUPPORT = ["system", "verdict", "unjudged", "quote_found"]
_JUDGEMENT = ["task_id", "mode", "judge", "repeat", "order", "marks", "best"]
# What was paid for beside the sections: table → its column with the model whose tokens a row has.
_BESIDE = {
    tables.KEY_ELEMENTS.name: "model",
    tables.G_SCORES.name: "judge",
    tables.CITATION_SUPPORT.name: "judge",
}
_COLUMNS: dict[str, list[str]] = {
    tables.RELATED_WORK_TASKS.name: ["task_id"],
    tables.SCORES.name: [
        "task_id",
        "system",
        "model",
        "metric",
        "value",
        "judge",
        "mode",
        "repeat",
    ],
    tables.SUMMARIES.name: ["system", "model", "repeat", *USAGE],
    **{name: [model, *USAGE] for name, model in _BESIDE.items()},
    tables.CITATION_SUPPORT.name: [*_SUPPORT, "model", "judge", *USAGE],
}
_DETAILS: dict[str, list[str]] = {
    tables.G_SCORES.name: [*_JUDGEMENT, *USAGE],
    tables.HUMAN_RATINGS.name: list(RATING_COLUMNS),
}


class Scores:
    """Values of `scores` by metric, system and task; repeats of one judgement are averaged."""

    def __init__(self, judges: Sequence[str] = ()) -> None:
        """judges: models in order of preference; the main tables show the first that judged."""
        self._values: dict[tuple[str, str], dict[str, dict[str, float]]] = defaultdict(
            lambda: defaultdict(dict)
        )
        self._preferred = tuple(judges)

    def add(self, table: pa.Table) -> None:
        """Add the rows of a month, of sections that are compared with one another."""
        keys = ["metric", "judge", "system", "task_id"]
        means = table.group_by(keys, use_threads=False).aggregate([("value", "mean")])
        columns = [means[name].to_pylist() for name in (*keys, "value_mean")]
        for metric, judge, system, task, value in zip(*columns, strict=True):
            if value is not None:
                self._values[metric, (judge or "") if metric.startswith("g_") else ""][system][
                    task
                ] = value

    def judges(self) -> list[str]:
        """Models that judged, the preferred ones first."""
        return preferred_first({judge for _, judge in self._values if judge}, self._preferred)

    @property
    def judge(self) -> str:
        """The model whose marks the main tables show; '' where none judged."""
        return next(iter(self.judges()), "")

    def by_task(self, system: str, metric: str, judge: str | None = None) -> Mapping[str, float]:
        """Task → value. A judge applies to metrics of the G-Score alone; None: the first."""
        by_judge = (self.judge if judge is None else judge) if metric.startswith("g_") else ""
        return self._values.get((metric, by_judge), {}).get(system, {})

    def mean(self, system: str, metric: str, judge: str | None = None) -> Estimate:
        """The mean over tasks with its interval."""
        return estimate(
            {task: [value] for task, value in self.by_task(system, metric, judge).items()}
        )

    def of_task(self, task: str, systems: Iterable[str], metric: str) -> dict[str, float]:
        """System → value of one task, by the first judge where a judge is needed; only systems that
        have one.
        """
        values = {system: self.by_task(system, metric).get(task) for system in systems}
        return {system: value for system, value in values.items() if value is not None}


@dataclass
class RelatedWorkData(MonthData):
    """Related work of one or several months."""

    systems_known = RELATED_WORK_SYSTEMS
    scores: Scores = field(default_factory=Scores)
    tasks: int = 0
    beside: dict[str, Cost] = field(default_factory=dict)
    """Name of a table → what it cost beside the sections."""
    judgements: list[Row] = field(default_factory=list)
    verdicts: dict[str, Counter[str]] = field(default_factory=dict)
    """System → its citations by verdict, `unjudged: <why>` for those without."""
    quotes: dict[str, Counter[bool]] = field(default_factory=dict)
    """System → its supported citations by whether the quote was found."""
    sections: Counter[str] = field(default_factory=Counter)
    """System → its sections, repeats not counted."""
    repeats: list[Row] = field(default_factory=list)
    """Scores of the tasks that were written repeatedly, of every repeat; those of the G-Score from
    sections that were marked alone.
    """
    ratings: list[Row] = field(default_factory=list)
    outdated_ratings: int = 0
    """Ratings of sections that have changed since."""
    off: dict[str, str] = field(default_factory=dict)
    """Name of a table without rows → why, where its file says so."""
    retention: dict[str, dict[int, list[float]]] = field(default_factory=dict)
    """System → step of its search → shares of earlier references that it kept, one for each task.
    """

    @cached_property
    def people(self) -> RatingResults | None:
        """What raters said; None where nobody rated."""
        return rating_results(self.ratings, self.judgements) if self.ratings else None

    @property
    def systems(self) -> list[str]:
        """Systems that wrote anything, by name."""
        return sorted(system for system, cost in self.written.items() if cost.items)

    @property
    def support_judges(self) -> list[str]:
        """Models that judged citations."""
        return sorted(self.beside.get(tables.CITATION_SUPPORT.name, Cost()).models)

    def costs(self) -> Iterator[Cost]:
        yield from (*self.written.values(), *self.beside.values())

    def add_month(self, root: DataRoot, month: str, read: MonthTables) -> None:
        """Add a month as `read_month` read it."""
        self.months.append(month)
        self.tasks += read[tables.RELATED_WORK_TASKS.name].num_rows
        summaries = with_writer_names(read[tables.SUMMARIES.name], self.names)
        self.add_written(summaries)
        self.sections.update(
            summaries.filter(pc.equal(summaries["repeat"], 0))["system"].to_pylist()
        )
        for name, model in _BESIDE.items():
            self.beside.setdefault(name, Cost()).add(read[name], model)
        self._add_scores(with_writer_names(read[tables.SCORES.name], self.names))
        self._add_support(with_writer_names(read[tables.CITATION_SUPPORT.name], self.names))
        judgements = _rows(read, tables.G_SCORES, _JUDGEMENT)
        self.judgements += [
            named_judgement(row, self.names) for row in judgements if row["mode"] == TOGETHER
        ]
        ratings = _rows(read, tables.HUMAN_RATINGS, RATING_COLUMNS)
        current = current_ratings(root, month, ratings)
        self.ratings += [
            {**row, "system": self.names.get(row["system"], row["system"])} for row in current
        ]
        self.outdated_ratings += len(ratings) - len(current)
        for name in (*_BESIDE, tables.SUMMARIES.name):
            provenance = read_provenance(root.file(tables.TABLES[name], month))
            if provenance is not None and provenance.notes.get("off"):
                self.off[name] = str(provenance.notes["off"])

    def _add_scores(self, table: pa.Table) -> None:
        together = pc.fill_null(pc.equal(table["mode"], TOGETHER), fill_value=False)
        unjudged = pc.and_(pc.is_null(table["mode"]), pc.equal(table["repeat"], 0))
        self.scores.add(table.filter(pc.or_(together, unjudged)))
        of_repeats = pc.and_(pc.greater(table["repeat"], 0), pc.invert(together))
        tasks = pc.unique(table.filter(of_repeats)["task_id"])
        repeated = table.filter(pc.and_(pc.is_in(table["task_id"], tasks), pc.invert(together)))
        self.repeats += repeated.to_pylist()

    def _add_support(self, table: pa.Table) -> None:
        counts = table.group_by(_SUPPORT, use_threads=False).aggregate([([], "count_all")])
        for row in counts.to_pylist():
            verdict = row["verdict"] or f"unjudged: {row['unjudged'] or 'unknown'}"
            self.verdicts.setdefault(row["system"], Counter())[verdict] += row["count_all"]
            if verdict == "supported":
                self.quotes.setdefault(row["system"], Counter())[bool(row["quote_found"])] += row[
                    "count_all"
                ]


def read_related_work(
    root: DataRoot, month: str, judges: Sequence[str], prices: Mapping[str, Prices]
) -> RelatedWorkData:
    """One month with its single judgements and ratings. Raises as `read_month` does."""
    names = writer_names(root, [month], tables.SUMMARIES)
    data = RelatedWorkData(prices, names, scores=Scores(judges))
    data.add_month(root, month, read_month(root, month, details=True))
    return data


def read_month(root: DataRoot, month: str, *, details: bool) -> MonthTables:
    """What a report needs of a month's tables, by name; no rows of a table that is missing.

    details: single judgements and ratings too, which only a month's page shows.

    Raises as `DataRoot.read` does for a file that is damaged or of another version, before anything
    is counted.
    """
    columns = _COLUMNS | (_DETAILS if details else {})
    return {
        name: read_or_empty(root, tables.TABLES[name], month, wanted)
        for name, wanted in columns.items()
    }


def _rows(read: MonthTables, table: Table, columns: list[str]) -> list[Row]:
    """The rows of a table, where these columns of it were read."""
    rows = read.get(table.name)
    return (
        rows.select(columns).to_pylist()
        if rows is not None and set(columns) <= set(rows.column_names)
        else []
    )
