"""Measures of rankings: recall, reciprocal rank and nDCG of each query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RECALLS = {"R@1": 1, "R@5": 5, "R@10": 10, "R@50": 50}
METRICS = (*RECALLS, "RR@50", "nDCG@10")
DIFFERENCE, DIFFERENCE_METRIC = "fused_minus_lexical", "R@10"
"""The paired difference of two methods, and the metric in which it is taken."""


def per_query(
    rankings: Sequence[Sequence[int]], relevant: Sequence[Sequence[int]]
) -> dict[str, NDArray[np.float64]]:
    """Metric → its value for every query, float64 of shape (queries,).

    R@k: the share of the relevant that is among the first k. RR@50: 1 over the rank of the first
    relevant one, 0 where it is not among the first 50. nDCG@10: gains of 1 divided by log2(rank +
    1), as a share of the best possible sum (Järvelin and Kekäläinen, 2002). All three agree with
    trec_eval's. A query without a ranking or without anything relevant has 0 in each.
    """
    import numpy as np

    values = {name: np.zeros(len(rankings)) for name in METRICS}
    discounts = 1 / np.log2(np.arange(2, 12))
    for query, (ranking, papers) in enumerate(zip(rankings, relevant, strict=True)):
        cited = set(papers)
        ranks = [rank for rank, paper in enumerate(ranking, 1) if paper in cited]
        if not ranks:
            continue
        for name, length in RECALLS.items():
            values[name][query] = sum(rank <= length for rank in ranks) / len(cited)
        if ranks[0] <= 50:
            values["RR@50"][query] = 1 / ranks[0]
        gain = sum(discounts[rank - 1] for rank in ranks if rank <= 10)
        values["nDCG@10"][query] = gain / discounts[: len(cited)].sum()
    return values
