"""Retrieval scores in a report: how well each way to search finds the papers that a sentence
cites.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline import tables
from pipeline.evaluation.retrieval.measures import DIFFERENCE, DIFFERENCE_METRIC
from pipeline.report.figures import BarFigure, bar
from pipeline.report.formatting import count, month_name, number_of
from pipeline.report.grid import Cell, Grid, Section
from pipeline.storage.data_root import DataRoot
from pipeline.storage.provenance import read_provenance

METHODS: Mapping[str, str] = {
    "lexical": "lexical (BM25)",
    "sparse": "sparse",
    "dense": "dense",
    "fused": "fused",
    "colbert": "fused, then ColBERT",
    "cross_encoder": "fused, then cross-encoder",
}
METRIC_NAMES: Mapping[str, str] = {
    "R@1": "recall@1",
    "R@5": "recall@5",
    "R@10": "recall@10",
    "R@50": "recall@50",
    "RR@50": "MRR",
    "nDCG@10": "nDCG@10",
}
# The one that tells methods apart where a pool is small: recall@10 of 20 papers is nearly 1 for
# all.
_DRAWN = "nDCG@10"
_FEW_PAPERS = 20


@dataclass(frozen=True, slots=True)
class RetrievalScores:
    """A month of `retrieval_scores`: (method, metric) → row; notes: what its file says of the
    month.
    """

    rows: Mapping[tuple[str, str], Mapping[str, Any]]
    notes: Mapping[str, Any]

    @property
    def queries(self) -> int:
        """How many sentences were searched for. Raises StopIteration without scores."""
        return int(next(iter(self.rows.values()))["queries"])

    @property
    def metrics(self) -> list[str]:
        """The metrics that were measured."""
        return [name for name in METRIC_NAMES if any(metric == name for _, metric in self.rows)]

    @property
    def methods(self) -> list[str]:
        """The ways to search that were measured."""
        return [method for method in METHODS if (method, _DRAWN) in self.rows]

    def cell(self, method: str, metric: str = _DRAWN) -> Cell:
        """A mean with its interval; empty where it was not measured."""
        row = self.rows.get((method, metric))
        return Cell(row["value"], "two", row["low"], row["high"]) if row else Cell(None, "two")


def read_retrieval(root: DataRoot, month: str) -> RetrievalScores:
    """The month's retrieval scores. Raises as `DataRoot.rows` does."""
    rows = root.rows(tables.RETRIEVAL_SCORES, month)
    by_key = {(row["method"], row["metric"]): row for row in rows}
    return RetrievalScores(by_key, retrieval_notes(root, month))


def retrieval_notes(root: DataRoot, month: str) -> Mapping[str, Any]:
    """What the file of the scores says of the month, such as why something was not measured."""
    provenance = read_provenance(root.file(tables.RETRIEVAL_SCORES, month))
    return provenance.notes if provenance else {}


def retrieval_section(scores: RetrievalScores) -> Section:
    """How well each way to search finds what papers cite."""
    if not scores.rows:
        why = scores.notes.get("no_scores", "it has no queries")
        text = f"How well search finds the papers that a sentence cites was not measured: {why}."
        return Section("retrieval", "Retrieval", (text,))
    colours = {method: colour for colour, method in enumerate(METHODS, start=1)}
    bars = [bar(METHODS[method], scores.cell(method), colours[method]) for method in scores.methods]
    rows = [
        [METHODS[method], *(scores.cell(method, metric) for metric in scores.metrics)]
        for method in scores.methods
    ]
    columns = ["Mean over sentences", *(METRIC_NAMES[metric] for metric in scores.metrics)]
    grid = Grid(
        "retrieval",
        "Retrieval scores",
        columns,
        rows,
        notes=_grid_notes(scores),
        best_of=columns[1:],
    )
    figure = BarFigure(
        _DRAWN, [(columns[0], bars)], "On an axis from 0 to 1; whiskers are intervals."
    )
    return Section("retrieval", "Retrieval", _paragraphs(scores), (figure, grid))


def _grid_notes(scores: RetrievalScores) -> list[str]:
    models = {method: row["model"] for (method, _), row in scores.rows.items()}
    skipped: Mapping[str, str] = scores.notes.get("not_measured", {})
    names = {**METHODS, **METRIC_NAMES}
    return [
        *(f"{name}: {models[method]}." for method, name in METHODS.items() if method in models),
        *(
            f"{name}: not measured; {skipped[key]}."
            for key, name in names.items()
            if key in skipped
        ),
    ]


def _paragraphs(scores: RetrievalScores) -> list[str]:
    row = next(iter(scores.rows.values()))
    asking_papers, in_all = (
        scores.notes.get("asking_papers", 0),
        scores.notes.get("papers_in_all", row["papers"]),
    )
    asking = f" of {number_of(asking_papers, 'paper')}" if asking_papers else ""
    of_all = f" (of {count(in_all)} up to this month)" if in_all > row["papers"] else ""
    paragraphs = [
        (
            f"{number_of(row['queries'], 'sentence')}{asking} that cite papers of the corpus,"
            f" without their citation marks, searched in {number_of(row['passages'], 'passage')} of"
            f" {number_of(row['papers'], 'paper')}{of_all}. A paper ranks as high as its best"
            " passage; the asking paper's own passages do not count. Intervals hold the mean in 95"
            " % of bootstrap draws of the asking papers."
        ),
    ]
    if asking_papers and asking_papers < _FEW_PAPERS:
        paragraphs.append(
            f"With {number_of(asking_papers, 'asking paper')} the intervals are too narrow: the"
            " figures are only hints."
        )
    difference = scores.rows.get((DIFFERENCE, DIFFERENCE_METRIC))
    if difference:
        ends = (
            ""
            if difference["low"] is None
            else f" ({difference['low']:+.2f} to {difference['high']:+.2f})"
        )
        paragraphs.append(
            "Fused search less BM25, recall@10, the same sentences:"
            f" {difference['value']:+.2f}{ends}."
        )
    return paragraphs


def overall_retrieval(months: Mapping[str, RetrievalScores]) -> list[Section]:
    """nDCG@10 of each way to search, by month."""
    scored = {month: scores for month, scores in months.items() if scores.methods}
    if not scored:
        return []
    methods = list(dict.fromkeys(name for scores in scored.values() for name in scores.methods))
    rows = []
    for month, scores in scored.items():
        link = Cell(month_name(month), page=f"{month}/index.html#retrieval")
        rows.append([link, *(scores.cell(method) for method in methods), scores.queries])
    text = (
        f"{_DRAWN} with 95 % intervals: how well each way to search finds the papers that a"
        " sentence cites. No language model is involved."
    )
    columns = ["Month", *(METHODS[method] for method in methods), "Queries"]
    return [
        Section(
            "retrieval",
            "Retrieval",
            (text,),
            (Grid("retrieval", f"{_DRAWN} by month", columns, rows),),
        )
    ]
