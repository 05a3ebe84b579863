"""Stability: how far repeats of the same sections lie apart.

After Figure 3 of ChatCite, arXiv 2403.02574: the spread of G-Score and of its six marks over
repeated runs, with and without reflection. How often, on how many tasks and on which the paper does
not say.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean, median, stdev, variance
from typing import Any


@dataclass(frozen=True, slots=True)
class Spread:
    """How far the runs of one system lie apart, a run being one repeat over all tasks: its mean
    over them.

    low, median, high: over runs. `sd`: standard deviation of the runs; `sd_of_a_task`: of one
    task's repeats, pooled over the tasks, which is what one section may differ by. Both are of
    samples, over n - 1. A task that lacks a run, as a repeat could not be judged, does not count:
    runs over unlike tasks would differ by the tasks.
    """

    system: str
    tasks: int
    runs: tuple[float, ...]
    low: float
    median: float
    high: float
    mean: float
    sd: float
    sd_of_a_task: float


def spread(rows: Iterable[Mapping[str, Any]], metric: str = "g_score") -> list[Spread]:
    """How far the repeats of each system lie apart by one metric; `rows`: of the table `scores`.

    A system that has not two runs with the metric over the same tasks is left out.
    """
    systems: dict[str, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        if row["metric"] == metric and row["value"] is not None:
            systems[row["system"]][row["task_id"]][row["repeat"]] = row["value"]
    spreads = (_spread(system, tasks) for system, tasks in sorted(systems.items()))
    return [each for each in spreads if each is not None]


def _spread(system: str, tasks: Mapping[str, Mapping[int, float]]) -> Spread | None:
    runs = sorted({repeat for values in tasks.values() for repeat in values})
    complete = [
        [values[run] for run in runs] for values in tasks.values() if len(values) == len(runs)
    ]
    if len(runs) < 2 or not complete:
        return None
    means = tuple(fmean(run) for run in zip(*complete, strict=True))
    return Spread(
        system=system,
        tasks=len(complete),
        runs=means,
        low=min(means),
        median=median(means),
        high=max(means),
        mean=fmean(means),
        sd=stdev(means),
        sd_of_a_task=math.sqrt(fmean(variance(values) for values in complete)),
    )
