"""Jobs over the assets, and running one in this process. Not here: when they run (`sensors`)."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
from dagster._core.instance.ref import InstanceRef
from filelock import FileLock, Timeout

from pipeline import progress

# A job may not bear the name of an asset, hence the verb. It is what the schedule and the sensor start, and what
# `citeloom run` executes in process: 0.6 s of overhead a run, against 10 s for one process per step.
refresh_corpus = dg.define_asset_job(
    "refresh_corpus",
    selection=dg.AssetSelection.all(),
    description="Every stage of one month, from the zips to the report; what is up to date is kept.",
    executor_def=dg.in_process_executor,
)

# The lock file that the process of a run holds: the system lets go of it when the process ends, however it ends.
_LOCK_TAG = "citeloom/lock"
_NO_CAPTURE: Any = {
    "compute_logs": {
        "module": "dagster._core.storage.noop_compute_log_manager",
        "class": "NoOpComputeLogManager",
    }
}


@dataclass(frozen=True, slots=True)
class RunResult:
    """What came of one run: whether all succeeded, and which assets a blocking check stopped, with what it said."""

    succeeded: bool
    blocked: Mapping[str, str]


def execute(job: dg.JobDefinition, assets: Sequence[str], month: str, home: Path, *, force: bool) -> RunResult:
    """Run some assets of a job on a month in this process, recorded in the instance at `home`.

    Runs whose process was killed are ended first: they would show as running for ever, and hold their pools' slots.
    """
    with _open_instance(home) as instance, _alive(home) as lock:
        end_dead_runs(instance, home)
        _tell_who_is_waited_for(instance)
        result = job.execute_in_process(
            run_config={
                "ops": {name: {"config": {"force": force, "retries": 0}} for name in assets},
                "loggers": {"console": {"config": {"log_level": "CRITICAL"}}},
            },
            instance=instance,
            partition_key=month,
            raise_on_error=False,
            asset_selection=[dg.AssetKey(name) for name in assets],
            tags={_LOCK_TAG: lock},
        )
    if any(_is_interruption(event) for event in result.all_events):
        raise KeyboardInterrupt  # Dagster takes a signal for the end of one run; whoever sent it meant the command
    return RunResult(result.success, _tell_checks(result, month))


def _tell_checks(result: dg.ExecuteInProcessResult, month: str) -> dict[str, str]:
    """Tell which checks did not hold; what is said of the blocking ones, by asset."""
    blocked = {}
    for check in result.get_asset_check_evaluations():
        if not check.passed:
            asset = check.asset_key.path[-1]
            facts = ", ".join(f"{name} {fact.value}" for name, fact in check.metadata.items())
            message = f"its check {check.check_name} does not hold: {facts}"
            progress.failed(asset, month, message)
            if check.blocking:
                blocked[asset] = message
    return blocked


def _open_instance(home: Path) -> dg.DagsterInstance:
    """The instance at `home`, without its capture of what a process prints.

    That costs two processes for every run, which print tracebacks of their own when the user presses Ctrl-C, and what
    stages have to say goes to the event log. Two processes that both find the instance's databases absent would each
    stamp them, and fail: hence the lock.
    """
    with FileLock(home / "opening.lock"):
        instance = dg.DagsterInstance.from_ref(InstanceRef.from_dir(str(home), overrides=_NO_CAPTURE))
        instance.get_runs(limit=1)
        instance.event_log_storage.get_concurrency_keys()
        return instance


def _is_interruption(event: dg.DagsterEvent) -> bool:
    error = event.step_failure_data.error if event.is_step_failure else None
    return error is not None and error.cls_name == "DagsterExecutionInterruptedError"


@contextmanager
def _alive(home: Path) -> Iterator[str]:
    """Hold a lock file for as long as this process works on a run; its name."""
    name = f"run-{uuid.uuid4().hex}.lock"
    try:
        with FileLock(home / name):
            yield name
    finally:
        (home / name).unlink(missing_ok=True)


def end_dead_runs(instance: dg.DagsterInstance, home: Path) -> list[str]:
    """Mark as failed the unfinished runs of `citeloom run` whose process is gone, and free their pools; their ids."""
    going = dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED])
    dead = [run for run in instance.get_runs(going) if _LOCK_TAG in run.tags and _is_free(home / run.tags[_LOCK_TAG])]
    for run in dead:
        instance.report_run_failed(run, "the process that ran it is gone; what it had finished stays")
        instance.event_log_storage.free_concurrency_slots_for_run(run.run_id)
        (home / run.tags[_LOCK_TAG]).unlink(missing_ok=True)
    return [run.run_id for run in dead]


def _tell_who_is_waited_for(instance: dg.DagsterInstance) -> None:
    for pool in sorted(instance.event_log_storage.get_concurrency_keys()):
        holders = instance.event_log_storage.get_concurrency_info(pool).active_run_ids
        if holders:
            progress.noted(
                f"the pool {pool} is held by run {', '.join(sorted(holders))}, which this one will wait for; "
                "if nothing runs there any more, terminate it on its page in citeloom ui"
            )


def _is_free(file: Path) -> bool:
    try:
        with FileLock(file, timeout=0):
            return True
    except Timeout:
        return False
