"""Measures of G-Score from rows of `g_scores` and `scores`: metrics, votes, spread over repeats."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev, variance
from typing import Any

from pipeline.evaluation.statistics import Estimate, estimate
from pipeline.tables import CRITERIA
from pipeline.tables.writers import writer_name

Row = Mapping[str, Any]


def mean_mark(marks: Row) -> float:
    """The G-Score of one system in one judgement: the mean of its six marks."""
    return fmean(marks[criterion] for criterion in CRITERIA)


def metrics(marks: Row, best: str | None) -> dict[str, float]:
    """Metric → value of one system: the six marks, their mean, and whether it was voted the best (0
    or 1), where anything was. marks: of one system, as a row of `g_scores` has them.
    """
    values = {f"g_{criterion}": float(marks[criterion]) for criterion in CRITERIA}
    values["g_score"] = mean_mark(marks)
    if best is not None:
        values["g_vote"] = float(best == writer_name(marks))
    return values


def vote_shares(votes: Mapping[str, Sequence[str]], systems: Iterable[str]) -> dict[str, Estimate]:
    """System → its share of the votes, 0 to 1, each task with the same weight. The shares of all
    systems that were on offer sum to 1. votes: task → the system of each vote.
    """
    return {
        system: estimate(
            {task: [vote == system for vote in of_task] for task, of_task in votes.items()}
        )
        for system in systems
    }


@dataclass(frozen=True, slots=True)
class Spread:
    """How far the runs of one system lie apart, a run being one repeat over all tasks: its mean
    over them.

    mean, sd: mean and standard deviation of the runs. sd_of_a_task: standard deviation of one
    task's repeats, pooled over the tasks, which is what one section may differ by. Both deviations
    are of samples, over n - 1. A task that lacks a run, as a repeat could not be judged, does not
    count: runs over unlike tasks would differ by the tasks.
    """

    system: str
    tasks: int
    runs: tuple[float, ...]
    mean: float
    sd: float
    sd_of_a_task: float


def spread(rows: Iterable[Row], metric: str = "g_score") -> list[Spread]:
    """How far the repeats of each system lie apart by one metric; `rows`: of the table `scores`.

    After Figure 3 of ChatCite: the spread of G-Score and of its six marks over repeated runs; how
    often, on how many tasks and on which the paper does not say. A system that has not two runs
    with the metric over the same tasks is left out.
    """
    systems: dict[str, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        if row["metric"] == metric and row["value"] is not None:
            systems[row["system"]][row["task_id"]][row["repeat"]] = row["value"]
    spreads = []
    for system, tasks in sorted(systems.items()):
        runs = sorted({run for values in tasks.values() for run in values})
        complete = [
            [values[run] for run in runs] for values in tasks.values() if len(values) == len(runs)
        ]
        if len(runs) > 1 and complete:
            means = tuple(fmean(run) for run in zip(*complete, strict=True))
            pooled = math.sqrt(fmean(map(variance, complete)))
            spreads.append(Spread(system, len(complete), means, fmean(means), stdev(means), pooled))
    return spreads
