"""Measures of G-Score from rows of `g_scores` and `scores`: metrics, votes, spread over repeats."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median, stdev, variance
from typing import Any

from pipeline.evaluation.statistics import Estimate, estimate
from pipeline.tables import CRITERIA
from pipeline.tables.writers import with_display_name, writer_name

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


def named_judgement(row: Row, names: Mapping[str, str]) -> dict[str, Any]:
    """A row of `g_scores` with writers' names in the `system` of its marks, and in its order and
    vote.

    names: writer's name → its short name, as `short_names` gives it.
    """
    lists = {
        column: [names.get(name, name) for name in row[column] or ()]
        for column in ("order", "cut")
        if column in row
    }
    return {
        **row,
        **lists,
        "marks": [with_display_name(marks, names) for marks in row["marks"]],
        "best": names.get(row["best"], row["best"]),
    }


def votes_by_task(rows: Iterable[Row], judge: str) -> dict[str, list[str]]:
    """Task → the systems that the judge voted the best, one for each row of `g_scores` with a
    vote.
    """
    votes: dict[str, list[str]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: (row["task_id"], row["repeat"])):
        if row["best"] is not None and row["judge"] == judge:
            votes[row["task_id"]].append(row["best"])
    return dict(votes)


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
            spreads.append(_spread(system, complete))
    return spreads


def _spread(system: str, values: list[list[float]]) -> Spread:
    """values: of each task, by run."""
    means = tuple(fmean(run) for run in zip(*values, strict=True))
    return Spread(
        system=system,
        tasks=len(values),
        runs=means,
        low=min(means),
        median=median(means),
        high=max(means),
        mean=fmean(means),
        sd=stdev(means),
        sd_of_a_task=math.sqrt(fmean(variance(of_task) for of_task in values)),
    )
