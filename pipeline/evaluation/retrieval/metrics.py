"""What rankings are worth: metrics of every query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RECALLS = {"R@1": 1, "R@5": 5, "R@10": 10, "R@50": 50}
METRICS = (*RECALLS, "RR@50", "nDCG@10")


def per_query(rankings: Sequence[Sequence[int]], relevant: Sequence[Sequence[int]]) -> dict[str, NDArray[np.float64]]:
    """Metric → its value for every query, float64 of shape (queries,), by ir-measures.

    A query whose ranking is empty has 0 in each. R@k is the share of the relevant that is among the first k.
    """
    import ir_measures
    import numpy as np

    values = {name: np.zeros(len(rankings)) for name in METRICS}
    wanted = {str(query): {str(paper): 1 for paper in papers} for query, papers in enumerate(relevant)}
    run = {
        str(query): {str(paper): float(len(papers) - place) for place, paper in enumerate(papers)}
        for query, papers in enumerate(rankings)
        if papers
    }
    if run:
        measures = {ir_measures.parse_measure(name): name for name in METRICS}
        for found in ir_measures.iter_calc(list(measures), wanted, run):
            values[measures[found.measure]][int(found.query_id)] = found.value
    return values
