"""Statistics of scores: bootstrap intervals, paired differences, agreement, votes.

A number that would be computed from nothing is None. Intervals are percentile intervals (Efron and
Tibshirani 1993, 13.3) of the cluster bootstrap (Field and Welsh 2007, Bootstrapping clustered
data): whole clusters are resampled (a task with all its judgements, a paper with all its
sentences), since the values within one are not independent.
"""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import sqrt
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, Literal, TypeVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# With 2,000 resamples the ends of an interval move by about a twentieth of its width from seed to
# seed.
CLUSTER_RESAMPLES = 2_000
# With 10,000 by less than half of that; systems are compared by a tenth of a mark, and have few
# tasks.
RESAMPLES = 10_000
# Of more tasks the mean is normal: on marks, shares and skewed values of 300 tasks the ends of the
# two intervals differ by 2 % of the width, 4 % at most. The page of 100 months, with some hundred
# measures, took 20 s by resampling 800 tasks.
MOST_DRAWN = 300
# Numbers that one batch of resamples holds: 64 MB.
_BATCH_NUMBERS = 8_000_000
_NORMAL = 1.96
_SEED = 20_240_301

Key = TypeVar("Key")
Value = TypeVar("Value")
Section = tuple[str, str]
"""Task and system."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean, share or coefficient with the ends of its 95 % interval. count: over how many tasks,
    sections or claims.

    value is None where it is undefined; low and high are None where there are too few for an
    interval.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    count: int = 0


def bootstrap_sums(
    statistic: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    values: NDArray[np.float64],
    clusters: Sequence[str],
    resamples: int = CLUSTER_RESAMPLES,
) -> tuple[float | None, float | None, float | None]:
    """A statistic of sums with the ends of its 95 % interval, by resampling clusters.

    statistic: sums of shape (..., columns) → values of shape (...), NaN where it is undefined;
    resamples in which it is undefined do not count. values: shape (values, columns). clusters: the
    cluster of each value. The resamples follow from the number of clusters alone, so that
    statistics of the same clusters are paired. All None where the statistic is undefined; no ends
    for a single cluster.
    """
    import numpy as np
    from scipy.stats import DegenerateDataWarning, bootstrap

    value = float(statistic(values.sum(axis=0)))
    if np.isnan(value):
        return None, None, None
    names, places = np.unique(np.array(clusters), return_inverse=True)
    if len(names) < 2:
        return value, None, None
    sums = np.zeros((len(names), values.shape[1]))
    np.add.at(sums, places, values)
    with warnings.catch_warnings():
        # scipy's own interval is not used: it is NaN where one resample is.
        warnings.simplefilter("ignore", DegenerateDataWarning)
        sampled = bootstrap(
            (np.arange(len(names)),),
            lambda sample, axis: statistic(sums[sample].sum(axis=axis - 1)),
            n_resamples=resamples,
            batch=max(_BATCH_NUMBERS // sums.size, 1),
            vectorized=True,
            axis=-1,
            method="percentile",
            rng=np.random.default_rng(_SEED),
        ).bootstrap_distribution
    if np.isnan(sampled).all():
        return value, None, None
    low, high = np.nanpercentile(sampled, [2.5, 97.5])
    # The value lies between them but for the last digit, where all clusters are alike.
    return value, min(float(low), value), max(float(high), value)


def mean_ends(
    values: Sequence[float] | NDArray[np.float64],
    clusters: Sequence[str],
    resamples: int = CLUSTER_RESAMPLES,
) -> tuple[float, float] | tuple[None, None]:
    """The ends of a mean's 95 % interval, by resampling clusters; (None, None) for one cluster."""
    import numpy as np

    columns = np.column_stack([values, np.ones(len(values))])
    _, low, high = bootstrap_sums(
        lambda sums: sums[..., 0] / sums[..., 1], columns, clusters, resamples
    )
    return (None, None) if low is None or high is None else (low, high)


def estimate(values_by_task: Mapping[str, Sequence[float]]) -> Estimate:
    """The mean over tasks of each task's mean, with its interval; of no value without any, of no
    ends for one task.

    values_by_task: task → its values, such as those of several repeats. A task without any does not
    count. A task weighs the same however often it was judged. The interval over more than
    MOST_DRAWN tasks, as those of all months may be, is the normal one.
    """
    return _estimate_of_means(
        tuple(fmean(values) for _, values in sorted(values_by_task.items()) if values)
    )


# A report has some measures in several tables, and the overall page has those of every month.
@lru_cache(maxsize=10_000)
def _estimate_of_means(means: tuple[float, ...]) -> Estimate:

    if not means:
        return Estimate(None)
    mean = fmean(means)
    if len(means) > MOST_DRAWN:
        apart = _NORMAL * stdev(means, mean) / sqrt(len(means))
        return Estimate(mean, mean - apart, mean + apart, len(means))
    low, high = mean_ends(means, [f"{place:09}" for place in range(len(means))], RESAMPLES)
    return Estimate(mean, low, high, len(means))


def paired_difference(
    first: Mapping[str, Sequence[float]], second: Mapping[str, Sequence[float]]
) -> Estimate | None:
    """First less second over the tasks with values for both; None for fewer than two tasks."""
    common = [task for task in first.keys() & second.keys() if first[task] and second[task]]
    if len(common) < 2:
        return None
    return estimate({task: [fmean(first[task]) - fmean(second[task])] for task in common})


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Spearman's rho, ties by mean rank; None for under three pairs or a constant side."""
    from scipy.stats import spearmanr

    if len(first) < 3 or len(set(first)) < 2 or len(set(second)) < 2:
        return None
    return float(spearmanr(first, second).statistic)


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far two agree that scored the same sections: two judges, or a judge and people.

    spearman: over all sections. same_order: of two sections of one task that neither scores alike,
    the share that both put in the same order; None without such a pair. mean_difference: of the
    second less the first.
    """

    sections: int
    spearman: float | None
    same_order: float | None
    mean_difference: float


def agreement(
    first: Mapping[Section, Sequence[float]], second: Mapping[Section, Sequence[float]]
) -> Agreement | None:
    """Agreement over the sections scored by both, of the means of their scores; None without
    any.
    """
    sections = sorted(first.keys() & second.keys())
    if not sections:
        return None
    ones, others = ({key: fmean(scores[key]) for key in sections} for scores in (first, second))
    same_order: list[bool] = []
    for keys in group((key[0], key) for key in sections).values():
        for one, other in combinations(keys, 2):
            step, other_step = ones[one] - ones[other], others[one] - others[other]
            if step and other_step:
                same_order.append(step * other_step > 0)
    return Agreement(
        sections=len(sections),
        spearman=rank_correlation([*ones.values()], [*others.values()]),
        same_order=fmean(same_order) if same_order else None,
        mean_difference=fmean(others.values()) - fmean(ones.values()),
    )


def group(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """Key → its values, both in their order."""
    groups: dict[Key, list[Value]] = defaultdict(list)
    for key, value in pairs:
        groups[key].append(value)
    return groups


def winners(votes: Mapping[Key, Iterable[Value]]) -> dict[Key, Value]:
    """Key → the value with most votes; a key without a vote, or of which two have as many, has
    none.
    """
    found = {}
    for key, values in votes.items():
        most = Counter(values).most_common(2)
        if most and (len(most) == 1 or most[0][1] > most[1][1]):
            found[key] = most[0][0]
    return found


Level = Literal["nominal", "ordinal"]


def alpha(values: Iterable[tuple[tuple[str, ...], Any]], level: Level = "ordinal") -> Estimate:
    """Krippendorff's alpha: 1 for perfect agreement, 0 for what chance would give. count: of the
    units compared.

    K. Krippendorff, Computing Krippendorff's Alpha-Reliability (2011), sections C to E:
    coincidences and the ordinal difference. Undefined where no two annotators met, or all gave one
    and the same value, so that chance alone would agree as well. Intervals resample whole tasks:
    what lies within one is annotated side by side, and so is not independent.

    values: (unit, value that an annotator gave it); a unit begins with its task, and one with one
    value is passed over. Numbers, where the level is ordinal.
    """
    import numpy as np

    compared = {unit: given for unit, given in group(values).items() if len(given) > 1}
    if not compared:
        return Estimate(None)
    scale = sorted({value for given in compared.values() for value in given})
    coincidences = np.zeros((len(compared), len(scale), len(scale)))
    for number, given in enumerate(compared.values()):
        # m values have m(m-1) ordered pairs, each counted 1/(m-1): a unit weighs as much as its
        # values.
        counts = np.array([given.count(value) for value in scale], dtype=float)
        coincidences[number] = (np.outer(counts, counts) - np.diag(counts)) / (len(given) - 1)

    def coefficient(sums: NDArray[np.float64]) -> NDArray[np.float64]:
        matrices = sums.reshape(*sums.shape[:-1], len(scale), len(scale))
        counts = matrices.sum(axis=-1)
        is_nominal = level == "nominal"
        distances = 1 - np.eye(len(scale)) if is_nominal else _ordinal_distances(counts)
        observed = (matrices * distances).sum(axis=(-2, -1))
        expected = (counts[..., :, None] * counts[..., None, :] * distances).sum(axis=(-2, -1))
        with np.errstate(divide="ignore", invalid="ignore"):
            pairs = counts.sum(axis=-1) - 1
            return np.where(expected > 0, 1 - pairs * observed / expected, np.nan)

    clusters = [unit[0] for unit in compared]
    return Estimate(
        *bootstrap_sums(coefficient, coincidences.reshape(len(compared), -1), clusters),
        len(compared),
    )


def _ordinal_distances(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Squared distances of each two values, shape (..., values, values): the number of values from
    the one to the other, the two themselves counted by half.
    """
    import numpy as np

    position = np.cumsum(counts, axis=-1) - counts / 2
    distance: NDArray[np.float64] = position[..., :, None] - position[..., None, :]
    return distance**2
