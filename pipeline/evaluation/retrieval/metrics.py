"""What rankings are worth: metrics of every query, their means, and intervals. Not here: how anything is ranked.

Sentences of one paper are not independent: its authors and its topic are behind all of them. So what is drawn again
for an interval is papers with all their sentences, and never single sentences (the cluster bootstrap; Field and Welsh
2007, Bootstrapping clustered data), and the interval is that between percentiles (Efron and Tibshirani 1993, 13.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RECALLS = {"R@1": 1, "R@5": 5, "R@10": 10, "R@50": 50}
METRICS = (*RECALLS, "RR@50", "nDCG@10")
# With 2,000 draws the ends of an interval move by about a twentieth of its width from seed to seed.
DRAWS = 2_000
_SEED = 20_240_301


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


@dataclass(frozen=True)
class Draws:
    """Draws with replacement of the papers that ask; the same for all that is compared, so differences are paired.

    asking: the paper of every query. The draws follow from the number of papers alone.
    """

    asking: Sequence[str]

    def interval(self, values: NDArray[np.float64]) -> tuple[float, float] | tuple[None, None]:
        """The 95 % interval of the mean of values, one a query; (None, None) where a single paper asks them all."""
        import numpy as np

        clusters, sizes = self._clusters
        if len(sizes) < 2:
            return None, None
        sums = np.bincount(clusters, weights=values, minlength=len(sizes))
        low, high = np.percentile((self._weights @ sums) / (self._weights @ sizes), [2.5, 97.5])
        mean = float(values.mean())
        # The mean lies between them but for the last digit, where all queries have one value.
        return min(float(low), mean), max(float(high), mean)

    @cached_property
    def _clusters(self) -> tuple[Any, Any]:
        import numpy as np

        _, clusters, sizes = np.unique(np.array(self.asking), return_inverse=True, return_counts=True)
        return clusters, sizes

    @cached_property
    def _weights(self) -> Any:
        import numpy as np

        papers = len(self._clusters[1])
        drawn = np.random.default_rng(_SEED).multinomial(papers, np.full(papers, 1 / papers), size=DRAWS)
        return drawn.astype(np.float64)
