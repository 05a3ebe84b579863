"""How good a month's data is, in a few numbers, and whether they lie where those of its neighbours do.

A number is warned of outside fixed bounds, and outside median ± 4 spreads of the months around it, where there are
enough of them. The spread is the median absolute deviation, scaled to a standard deviation (Rousseeuw and Croux 1993,
factor 1.4826), or what chance alone gives a month of that size, whichever is more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from pipeline import tables
from pipeline.engine.stage import Workspace
from pipeline.storage.provenance import read_provenance
from pipeline.tables import Table

# Half a year to either side: arXiv's papers and LaTeXML's ways change over years, not months.
NEIGHBOURS = 6
# With fewer, one odd neighbour would set the range.
FEWEST_NEIGHBOURS = 4
_SPREADS = 4.0
_MAD_TO_DEVIATION = 1.4826
# The standard deviation of passages per paper, of their mean: 0.35 in the eleven papers of
# docs/experiments/first-run.md, among which there is no thesis.
_VARIATION_OF_LENGTHS = 0.6
# What the settings or arXiv keep out is no failure to parse.
_UNWANTED = frozenset({"no_metadata", "withdrawn", "not_computer_science", "other_category"})

# Counts that stages note in their files: of papers, and of vectors.
_NOTED = {tables.PAPERS.name: ("low_grades", "cut_off"), tables.EMBEDDINGS.name: ("truncated", "off_norm")}

Values = dict[str, tuple[float, int]]
"""Name of a measure → its value, and of how many things it is the share or the mean."""


@dataclass(frozen=True, slots=True)
class Measure:
    """One number of a month. low, high: fixed bounds. least: the smallest spread that means anything."""

    name: str
    table: Table
    words: str
    low: float
    high: float
    least: float
    is_share: bool = True

    def noise(self, centre: float, count: int) -> float:
        """The standard deviation that chance alone gives a month of `count` things around `centre`."""
        if not self.is_share:
            return _VARIATION_OF_LENGTHS * centre / math.sqrt(count)
        share = (centre * count + 1) / (count + 2)  # Laplace's rule, so that no share is sure
        return math.sqrt(share * (1 - share) / count)


MEASURES = (
    Measure("parsed", tables.PAPERS, "wanted pages that became papers", 0.8, 1.0, 0.01),
    Measure("low_grades", tables.PAPERS, "papers of grade C or D", 0.0, 0.5, 0.02),
    Measure("cut_off", tables.PAPERS, "papers whose page breaks off", 0.0, 0.2, 0.01),
    Measure("passages_per_paper", tables.PASSAGES, "passages per paper", 2.0, 2_000.0, 2.0, is_share=False),
    Measure("truncated", tables.EMBEDDINGS, "passages longer than the model reads", 0.0, 1.0, 0.02),
    Measure("off_norm", tables.EMBEDDINGS, "dense vectors that are not of unit length", 0.0, 0.0, 0.0),
    Measure("indexed", tables.INDEX_RECEIPTS, "points that the index held after the load", 1.0, 1.0, 0.0),
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One measure of one month, the range in which it should lie, and the neighbours that say so."""

    month: str
    measure: str
    words: str
    value: float
    count: int
    low: float
    high: float
    neighbours: Mapping[str, float]

    @property
    def holds(self) -> bool:
        """Whether the value lies in its range."""
        return self.low <= self.value <= self.high

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "holds": self.holds}

    def describe(self) -> str:
        """The finding as a sentence."""
        enough = len(self.neighbours) >= FEWEST_NEIGHBOURS
        by = f"by the {len(self.neighbours)} months around it" if enough else "by fixed bounds"
        return f"{self.words}: {self.value:.4g}, expected {self.low:.4g} to {self.high:.4g} {by}"


def findings(workspace: Workspace, month: str, only: Table | None = None) -> list[Finding]:
    """What is found of a month, measure by measure, or of one of its tables; a table that is not there has none."""
    measures = [measure for measure in MEASURES if only in (None, measure.table)]
    found = []
    for table in dict.fromkeys(measure.table for measure in measures):
        values = measured(workspace, table, month)
        around = {other: measured(workspace, table, other) for other in neighbours(workspace, table, month)}
        for measure in measures:
            if measure.table is table and measure.name in values:
                found.append(_finding(measure, month, values[measure.name], around))
    return found


def neighbours(workspace: Workspace, table: Table, month: str) -> list[str]:
    """The months nearest to this one that the table holds, at most NEIGHBOURS to either side."""
    months = workspace.root.months(table)
    before = [other for other in months if other < month][-NEIGHBOURS:]
    return before + [other for other in months if other > month][:NEIGHBOURS]


def _finding(measure: Measure, month: str, own: tuple[float, int], around: Mapping[str, Values]) -> Finding:
    value, count = own
    history = {other: values[measure.name][0] for other, values in around.items() if measure.name in values}
    low, high = range_of(measure, list(history.values()), count)
    return Finding(month, measure.name, measure.words, value, count, low, high, history)


def range_of(measure: Measure, around: Sequence[float], count: int) -> tuple[float, float]:
    """Where the measure of a month of `count` things should lie: within its bounds, and near enough to those around."""
    if len(around) < FEWEST_NEIGHBOURS:
        return measure.low, measure.high
    centre = median(around)
    deviation = _MAD_TO_DEVIATION * median(abs(value - centre) for value in around)
    spread = max(deviation, measure.least, measure.noise(centre, count) if measure.least else 0.0)
    return max(measure.low, centre - _SPREADS * spread), min(measure.high, centre + _SPREADS * spread)


def measured(workspace: Workspace, table: Table, month: str) -> Values:
    """The measures of a month of a table, by what its file notes; empty where it is not there or holds nothing to
    measure, and without what an earlier version did not note. Raises PermanentFailure where the month cannot be read.
    """
    root = workspace.root
    written = read_provenance(root.file(table, month))
    if written is None:
        return {}
    parts: dict[str, tuple[int, int]] = {
        name: (written.notes[name], written.rows) for name in _NOTED.get(table.name, ()) if name in written.notes
    }
    if table is tables.PAPERS:
        lost = sum(count for reason, count in written.left_out.items() if reason not in _UNWANTED)
        parts["parsed"] = written.rows, written.rows + lost
    elif table is tables.PASSAGES:
        papers = read_provenance(root.file(tables.PAPERS, month))
        parts["passages_per_paper"] = written.rows, papers.rows if papers else 0
    elif table is tables.INDEX_RECEIPTS:
        rows = root.rows(tables.INDEX_RECEIPTS, month, ["expected", "present"])
        parts["indexed"] = sum(row["present"] for row in rows), sum(row["expected"] for row in rows)
    return {name: (part / whole, whole) for name, (part, whole) in parts.items() if whole}
