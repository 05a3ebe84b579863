"""What is shown of a month's retrieval scores: lines of a table, bars with their intervals, and what was not measured.

Every function is pure: rows in, frozen values out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.evaluation.retrieval.metrics import METRICS
from pipeline.evaluation.retrieval.scoring import DIFFERENCE, DIFFERENCE_METRIC, FORMS
from pipeline.evaluation.statistics import Estimate

METHODS: Mapping[str, str] = {
    "lexical": "lexical (BM25)",
    "sparse": "sparse",
    "dense": "dense",
    "fused": "fused",
    "colbert": "fused, then ColBERT",
    "cross_encoder": "fused, then cross-encoder",
}
FORM_NAMES: Mapping[str, str] = {
    "passage": "the passage alone",
    "title": "title and passage",
    "sections": "title, sections and passage",
}
METRIC_NAMES: Mapping[str, str] = {
    "R@1": "recall@1",
    "R@5": "recall@5",
    "R@10": "recall@10",
    "R@50": "recall@50",
    "RR@50": "MRR",
    "nDCG@10": "nDCG@10",
}
# The one that tells methods apart where a pool is small: recall@10 of 20 papers is nearly 1 for all.
DRAWN = "nDCG@10"


@dataclass(frozen=True, slots=True)
class ScoreLine:
    """One way to search in one form of text. `values` has each metric; `series` is the number of its colour."""

    name: str
    model: str
    series: int
    values: Mapping[str, Estimate]


@dataclass(frozen=True, slots=True)
class FormLines:
    """The ways to search in one form of text."""

    name: str
    in_use: bool
    lines: Sequence[ScoreLine]


@dataclass(frozen=True, slots=True)
class RetrievalView:
    """What a page shows of the month. `no_scores` says why there are none; `not_measured` has (name, reason)."""

    forms: Sequence[FormLines] = ()
    metrics: Sequence[tuple[str, str]] = ()
    drawn: str = DRAWN
    queries: int = 0
    asking_papers: int = 0
    papers: int = 0
    passages: int = 0
    papers_in_all: int = 0
    difference: Estimate | None = None
    not_measured: Sequence[tuple[str, str]] = ()
    no_scores: str = ""
    models: Sequence[tuple[str, str]] = ()


def retrieval_view(rows: Iterable[Mapping[str, Any]], notes: Mapping[str, Any]) -> RetrievalView:
    """The view of a month. rows: of `retrieval_scores`; notes: what its file says of the month."""
    rows = list(rows)
    if not rows:
        return RetrievalView(no_scores=notes.get("no_scores", "it has no queries"))
    found = {(row["method"], row["form"], row["metric"]): row for row in rows}
    in_use = next((row["form"] for row in rows if row["method"] == DIFFERENCE), notes.get("form_in_use"))
    difference = found.get((DIFFERENCE, in_use, DIFFERENCE_METRIC))
    skipped: Mapping[str, str] = notes.get("not_measured", {})
    models = {METHODS[row["method"]]: row["model"] for row in rows if row["method"] in METHODS}
    return RetrievalView(
        metrics=[
            (metric, name) for metric, name in METRIC_NAMES.items() if any(row["metric"] == metric for row in rows)
        ],
        forms=[lines for form in FORMS if (lines := _lines(found, form, form == in_use)).lines],
        queries=rows[0]["queries"],
        asking_papers=notes.get("asking_papers", 0),
        papers=rows[0]["papers"],
        passages=rows[0]["passages"],
        papers_in_all=notes.get("papers_in_all", rows[0]["papers"]),
        difference=_measured(difference) if difference else None,
        not_measured=[(name, skipped[key]) for key, name in {**METHODS, **METRIC_NAMES}.items() if key in skipped],
        models=[(name, models[name]) for name in METHODS.values() if name in models],
    )


def _lines(found: Mapping[tuple[str, str, str], Mapping[str, Any]], form: str, in_use: bool) -> FormLines:
    lines = []
    for series, (method, name) in enumerate(METHODS.items(), start=1):
        mine = {metric: found[method, form, metric] for metric in METRICS if (method, form, metric) in found}
        if mine:
            values = {metric: _measured(row) for metric, row in mine.items()}
            lines.append(ScoreLine(name, next(iter(mine.values()))["model"], series, values))
    return FormLines(FORM_NAMES[form], in_use, lines)


def _measured(row: Mapping[str, Any]) -> Estimate:
    return Estimate(row["value"], row["low"], row["high"])


def with_interval(measured: Estimate, signed: bool = False) -> str:
    """A mean and its interval as text: `0.83 (0.74 to 0.94)`."""
    sign = "+" if signed else ""
    if measured.low is None or measured.high is None:
        return f"{measured.value:{sign}.2f}"
    return f"{measured.value:{sign}.2f} ({measured.low:{sign}.2f} to {measured.high:{sign}.2f})"
