"""The process that works on a Dagster run: that it is seen to live, ends with its parent, and can be stopped.

Dagster's default launcher has no health check, so a run whose process was killed with its host stays STARTED and holds
its pools' slots; and a child of a killed code server works on. Hence a lock file for each run, an executor that holds
it, and a sweeper for `citeloom run`, `citeloom ui` and the sensor `stuck_runs`.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import dagster as dg
from dagster._core.definitions.executor_definition import IN_PROC_CONFIG
from dagster._core.errors import DagsterExecutionInterruptedError
from dagster._core.execution.plan.active import ActiveExecution
from dagster._core.execution.retries import RetryMode
from dagster._core.execution.step_dependency_config import StepDependencyConfig
from dagster._core.executor.in_process import InProcessExecutor

from pipeline.engine import liveness

UNFINISHED = (
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
)
# A run is STARTED some milliseconds before its process has its lock file; a busy disk makes that seconds.
SECONDS_TO_SHOW = 45
_SECONDS_BETWEEN_LOOKS = 0.5
_SECONDS_BETWEEN_SWEEPS = 10.0

# Locks of runs that end with this process: let go of earlier, a run would look for a moment as if its process were
# gone.
_held_to_the_end = ExitStack()


def own_from_now_on(plan_context: Any) -> None:
    """For an executor: this process works on the run of the plan, until it ends, and it ends with the code server."""
    parent = multiprocessing.parent_process()
    if parent is not None and parent.pid is not None:
        liveness.end_with_parent(parent.pid)
    instance = plan_context.instance
    if instance.root_directory is not None and instance.is_persistent:
        _held_to_the_end.enter_context(liveness.alive(Path(instance.root_directory), plan_context.run_id))


class _OwnedExecutor(InProcessExecutor):
    """Dagster's in-process executor, whose process owns the run it works on and ends with the code server."""

    def execute(self, plan_context: Any, execution_plan: Any) -> Iterator[dg.DagsterEvent]:
        own_from_now_on(plan_context)
        yield from super().execute(plan_context, execution_plan)


@dg.executor(name="in_process", config_schema=IN_PROC_CONFIG)
def in_one_process(context: dg.InitExecutorContext) -> dg.Executor:
    """Every step of a run in the run's own process, which is seen to live and ends with its parent."""
    asked = context.executor_config
    return _OwnedExecutor(
        retries=RetryMode.from_config(asked["retries"]),  # type: ignore[arg-type]
        step_dependency_config=StepDependencyConfig.from_config(asked.get("step_dependency_config")),  # type: ignore[arg-type]
    )


def end_dead_runs(instance: dg.DagsterInstance, home: Path) -> list[str]:
    """End the unfinished runs whose process is gone, and free the pools' slots of all that have ended; their ids.

    A run without a lock file is another machine's, where the instance is shared (Postgres); on SQLite, which one
    machine has for itself, its process ended before it could take one.
    """
    unfinished = _unfinished(instance)
    ended = []
    # Also the files of runs that have ended well: their processes hold them to the last moment.
    for run_id in sorted(unfinished.keys() | liveness.shown(home)):
        with liveness.examined(home, run_id) as sign:
            if _is_dead(instance, unfinished.get(run_id), sign):
                ended += _end(instance, run_id)
    _free_what_ended_runs_hold(instance, home)
    return ended


def _free_what_ended_runs_hold(instance: dg.DagsterInstance, home: Path) -> None:
    """Free slots of pools whose run has ended without letting go of them: it was ended on its page, say, and its
    process killed. Nobody looks at such a run again, and every later one would wait for it without end."""
    events = instance.event_log_storage
    for run_id in events.get_concurrency_run_ids():
        run = instance.get_run_by_id(run_id)
        if (run is None or run.is_finished) and liveness.sign(home, run_id) is not liveness.Sign.LIVES:
            events.free_concurrency_slots_for_run(run_id)


def dead_runs(instance: dg.DagsterInstance, home: Path) -> list[str]:
    """The unfinished runs that `end_dead_runs` would end, which are left as they are."""
    unfinished = _unfinished(instance).items()
    return [run_id for run_id, record in unfinished if _is_dead(instance, record, liveness.sign(home, run_id))]


def _unfinished(instance: dg.DagsterInstance) -> dict[str, dg.RunRecord]:
    records = instance.get_run_records(dg.RunsFilter(statuses=list(UNFINISHED)))
    return {record.dagster_run.run_id: record for record in records}


def _is_dead(instance: dg.DagsterInstance, record: dg.RunRecord | None, sign: liveness.Sign) -> bool:
    """Whether a run is unfinished and its process gone, or never shown though by now this machine would see it."""
    if record is None or sign is liveness.Sign.LIVES:
        return False
    alone = "sqlite" in type(instance.run_storage).__module__
    late = time.time() > record.update_timestamp.timestamp() + SECONDS_TO_SHOW
    started = record.dagster_run.status is dg.DagsterRunStatus.STARTED
    return sign is liveness.Sign.GONE or (alone and late and started)


def _end(instance: dg.DagsterInstance, run_id: str) -> list[str]:
    run = instance.get_run_by_id(run_id)
    if run is None or run.is_finished:
        return []
    # Slots before the run: whoever ends it may be killed between the two.
    instance.event_log_storage.free_concurrency_slots_for_run(run_id)
    if run.status is dg.DagsterRunStatus.CANCELING:
        instance.report_run_canceled(run, "the process that was to end it is gone; what it had finished stays")
    else:
        instance.report_run_failed(run, "the process that ran it is gone; what it had finished stays")
    return [run_id]


class _Sweeping:
    """Ends dead runs from time to time while this process waits for a pool: the one that holds it may die meanwhile,
    and without a daemon nobody else would look."""

    def __init__(self) -> None:
        self._next = 0.0

    def now_and_then(self, instance: dg.DagsterInstance) -> None:
        if time.monotonic() < self._next or instance.root_directory is None:
            return
        self._next = time.monotonic() + _SECONDS_BETWEEN_SWEEPS
        end_dead_runs(instance, Path(instance.root_directory))


_sweeping = _Sweeping()


def _wait_for_pool(execution: ActiveExecution) -> None:
    """Wait until a step may run, or the process is asked to end. What a dead run holds of a pool is freed meanwhile.

    In place of Dagster's own (1.13.27), which waits for the least of zero and the time to the next look at the pools,
    so not at all: a run that waited for a pool took a whole core, and saw no signal, as it looks for none.
    """
    if execution.check_for_interrupts():
        raise DagsterExecutionInterruptedError
    waits = execution._instance_concurrency_context
    if waits is not None and waits.has_pending_claims():
        _sweeping.now_and_then(waits._instance)
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    else:
        time.sleep(min(max(execution.sleep_interval(), 0), _SECONDS_BETWEEN_LOOKS))  # type: ignore[no-untyped-call]


ActiveExecution.sleep_til_ready = _wait_for_pool  # type: ignore[assignment,method-assign]
