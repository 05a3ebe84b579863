"""The scores of some months by metric, system and task, and their means."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import pyarrow as pa

from pipeline.evaluation.judging import TOGETHER
from pipeline.report.grid import Form, Value

ByTask = dict[str, float]


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over tasks with its 95 % interval, None where there is too little for one; `tasks` it is over."""

    value: float | None
    low: float | None = None
    high: float | None = None
    tasks: int = 0

    def cell(self, form: Form, tag: str = "") -> Value:
        """The mean as a cell of a table."""
        return Value(self.value, form, self.low, self.high, tag)


class Scores:
    """Values of `scores`, repeats of one judgement averaged: the mean of a task is one number, however often it was
    judged."""

    def __init__(self, judges: Sequence[str] = ()) -> None:
        """judges: models in the order in which they are told, the first being the one of the main tables."""
        self._found: dict[tuple[str, str, str], dict[str, ByTask]] = defaultdict(lambda: defaultdict(dict))
        self._wanted = tuple(judges)

    def add(self, table: pa.Table) -> None:
        """Take the rows of a month."""
        keys = ["metric", "mode", "judge", "system", "task_id"]
        means = table.group_by(keys, use_threads=False).aggregate([("value", "mean")])
        columns = [means[name].to_pylist() for name in (*keys, "value_mean")]
        for metric, mode, judge, system, task, value in zip(*columns, strict=True):
            if value is not None:
                key = (metric, mode or "", judge or "") if metric.startswith("g_") else (metric, "", "")
                self._found[key][system][task] = value

    def judges(self) -> list[str]:
        """Models that judged, the first judge first."""
        found = {judge for _, _, judge in self._found if judge}
        return [judge for judge in self._wanted if judge in found] + sorted(found - set(self._wanted))

    @property
    def judge(self) -> str:
        """The model whose marks the main tables show; '' where none judged."""
        return next(iter(self.judges()), "")

    def by_task(self, system: str, metric: str, mode: str = TOGETHER, judge: str | None = None) -> Mapping[str, float]:
        """Task → value; empty where there is none. Mode and judge matter to metrics of the G-Score alone."""
        asked = (metric, mode, self.judge if judge is None else judge) if metric.startswith("g_") else (metric, "", "")
        return self._found.get(asked, {}).get(system, {})

    def mean(self, system: str, metric: str, mode: str = TOGETHER, judge: str | None = None) -> Mean:
        """The mean over tasks with its interval."""
        return mean_of(self.by_task(system, metric, mode, judge))

    def of_task(self, task: str, systems: Iterable[str], metric: str) -> dict[str, float]:
        """System → value of one task by the first judge, who saw the systems together; those that have one."""
        found = {system: self.by_task(system, metric).get(task) for system in systems}
        return {system: value for system, value in found.items() if value is not None}


def mean_of(by_task: Mapping[str, float]) -> Mean:
    """The mean over tasks with its interval, which draws tasks."""
    from pipeline.evaluation.statistics import mean_interval

    if not by_task:
        return Mean(None)
    # By task: an interval that depended on the order of rows would change with it.
    ordered = {task: by_task[task] for task in sorted(by_task)}
    found = mean_interval({task: [value] for task, value in ordered.items()})
    if found is None:
        return Mean(fmean(ordered.values()), tasks=len(ordered))
    return Mean(*found, tasks=len(ordered))
