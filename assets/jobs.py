"""Jobs over the assets, and running one in this process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
from dagster._core.instance.ref import InstanceRef
from dagster._core.utils import make_new_run_id
from filelock import FileLock

from assets.executors import chosen_executor
from assets.placement import POOLS, definition_time_settings
from pipeline.engine import progress, shutdown
from pipeline.engine.liveness import alive
from pipeline.errors import TransientFailure
from pipeline.running.run_process import UNFINISHED, dead_runs, end_dead_runs, in_one_process

# Checks that look at all months: in each of a backfill's runs they would take as long as a small month.
_OF_ALL_MONTHS = dg.AssetSelection.checks_for_assets("months")
_ARXIV = dg.AssetSelection.assets("arxiv_changes")
check_months = dg.define_asset_job(
    "check_months",
    selection=_OF_ALL_MONTHS,
    description="Which months failed or are out of date now, and whether the newest is there.",
    executor_def=in_one_process,
)

# A job may not bear the name of an asset, hence the verb. It is what the schedule and the sensor start, and what
# `citeloom run` executes in process: 0.6 s of overhead a run, against 10 s for one process per step.
refresh_corpus = dg.define_asset_job(
    "refresh_corpus",
    selection=dg.AssetSelection.all() - _OF_ALL_MONTHS - _ARXIV,
    description="Every stage of one month, from the zips to the report; what is up to date is kept.",
    executor_def=chosen_executor(definition_time_settings()),
)

# What the schedule starts. A run, since a tick that lasts longer than a minute is ended; `sensors.refresh` goes on.
find_changes = dg.define_asset_job(
    "find_changes",
    selection=_ARXIV,
    description="Ask arXiv what changed, and find the months to refresh; their runs follow.",
    executor_def=in_one_process,
)

_NO_CAPTURE: Any = {
    "compute_logs": {
        "module": "dagster._core.storage.noop_compute_log_manager",
        "class": "NoOpComputeLogManager",
    }
}


@dataclass(frozen=True, slots=True)
class RunResult:
    """What came of one run: whether all succeeded, and which assets a blocking check stopped, with what it said.

    reason: what Dagster itself met, such as a full disk under its own databases; empty where it met nothing.
    """

    succeeded: bool
    blocked: Mapping[str, str]
    reason: str = ""


def execute(job: dg.JobDefinition, assets: Sequence[str], month: str, home: Path, *, force: bool) -> RunResult:
    """Run some assets of a job on a month in this process, recorded in the instance at `home`.

    Runs whose process was killed are ended first: they would show as running for ever, and hold their pools' slots.
    """
    run_id = make_new_run_id()
    with _open_instance(home) as instance, alive(home, run_id):
        end_dead_runs(instance, home)
        _tell_who_is_waited_for(instance)
        result = job.execute_in_process(
            run_config=_run_config(assets, force=force),
            instance=instance,
            partition_key=month,
            raise_on_error=False,
            asset_selection=[dg.AssetKey(name) for name in assets],
            run_id=run_id,
        )
    return _result_of(result.all_events, month)


def _run_config(assets: Iterable[str], *, force: bool) -> dict[str, Any]:
    return {
        "ops": {name: {"config": {"force": force, "retries": 0}} for name in assets},
        "loggers": {"console": {"config": {"log_level": "CRITICAL"}}},
    }


def _result_of(events: Sequence[dg.DagsterEvent], month: str) -> RunResult:
    """What came of a run that told these events. Raises KeyboardInterrupt where it was interrupted."""
    if shutdown.requested() or any(_is_interruption(event) for event in events):
        raise KeyboardInterrupt  # Dagster takes a signal for the end of one run; whoever sent it meant the command
    succeeded = any(event.is_job_success for event in events)
    return RunResult(succeeded, _tell_checks(events, month), _reason(events))


def sweep(home: Path) -> list[str]:
    """End the runs of the instance at `home` whose process is gone; their ids."""
    with _open_instance(home) as instance:
        return end_dead_runs(instance, home)


@dataclass(frozen=True, slots=True)
class HomeState:
    """How Dagster's instance stands. going, dead: unfinished runs whose process lives, and is gone. pools: who holds
    each. outdated: stores of an older schema than this Dagster's."""

    going: tuple[str, ...]
    dead: tuple[str, ...]
    pools: Mapping[str, tuple[str, ...]]
    outdated: tuple[str, ...]


def examine(home: Path) -> HomeState:
    """How the instance at `home` stands; nothing of it is changed. Raises as opening it does."""
    with _open_instance(home) as instance:
        dead = dead_runs(instance, home)
        unfinished = [run.run_id for run in instance.get_runs(dg.RunsFilter(statuses=list(UNFINISHED)))]
        events = instance.event_log_storage
        holders = {pool: events.get_concurrency_info(pool).active_run_ids for pool in events.get_concurrency_keys()}
        stores = {"runs": instance.run_storage, "events": events, "schedules": instance.schedule_storage}
        return HomeState(
            tuple(run for run in unfinished if run not in dead),
            tuple(dead),
            {pool: tuple(sorted(runs)) for pool, runs in sorted(holders.items()) if runs},
            tuple(name for name, store in stores.items() if _is_outdated(store)),
        )


def _is_outdated(store: Any) -> bool:
    """Whether a store's schema is not the newest one of this Dagster; all of Dagster's stores are told by alembic."""
    found = store.alembic_version() if store is not None else None
    return found is not None and found[0] != found[1]


def _tell_checks(events: Iterable[dg.DagsterEvent], month: str) -> dict[str, str]:
    """Tell which checks did not hold; what is said of the blocking ones, by asset."""
    blocked = {}
    evaluated = (event for event in events if event.event_type is dg.DagsterEventType.ASSET_CHECK_EVALUATION)
    for check in (event.asset_check_evaluation_data for event in evaluated):
        if not check.passed:
            asset = check.asset_key.path[-1]
            facts = ", ".join(f"{name} {fact.value}" for name, fact in check.metadata.items())
            if check.severity is dg.AssetCheckSeverity.WARN:
                progress.noted(f"{asset} of {month}: {check.description or f'{check.check_name}: {facts}'}")
                continue
            message = f"its check {check.check_name} does not hold: {facts}"
            progress.failed(asset, month, message)
            if check.blocking:
                blocked[asset] = message
    return blocked


def _open_instance(home: Path) -> dg.DagsterInstance:
    """The instance at `home`, without its capture of what a process prints.

    That costs two processes for every run, which print tracebacks of their own when the user presses Ctrl-C, and what
    stages have to say goes to the event log. Two processes that both find the instance's databases absent would each
    stamp them, and fail: hence the lock. Raises TransientFailure where Postgres does not answer.
    """
    with FileLock(home / "opening.lock"):
        try:
            instance = dg.DagsterInstance.from_ref(InstanceRef.from_dir(str(home), overrides=_NO_CAPTURE))
            instance.get_runs(limit=1)
            _make_pools(instance)
        except Exception as error:
            if not type(error).__module__.startswith("dagster_postgres"):  # the package may not be installed
                raise
            reason = " ".join(str(error.__cause__).split("\n(Background")[0].split())
            raise TransientFailure(f"CITELOOM_DAGSTER_PG_URL: Postgres does not let us in: {reason}") from error
        return instance


def _make_pools(instance: dg.DagsterInstance) -> None:
    """Give each pool its limit, one process at a time: Dagster (1.13.27) does so when a step first asks for the pool,
    and on Postgres the second of two steps that ask at once fails with its run."""
    events = instance.event_log_storage
    for pool in sorted(set(POOLS) - events.get_concurrency_keys()):
        events.initialize_concurrency_limit_to_default(pool)


def _is_interruption(event: dg.DagsterEvent) -> bool:
    error = _error_of(event)
    return error is not None and error.cls_name == "DagsterExecutionInterruptedError"


def _error_of(event: dg.DagsterEvent) -> Any:
    if event.is_job_failure:
        return event.job_failure_data.error
    return event.step_failure_data.error if event.is_step_failure else None


def _reason(events: Iterable[dg.DagsterEvent]) -> str:
    """The first line of the last error of a run; empty where there was none."""
    errors = [_error_of(event) for event in events]
    lines = [error.message.strip().splitlines()[0] for error in errors if error is not None and error.message.strip()]
    return lines[-1] if lines else ""


def _tell_who_is_waited_for(instance: dg.DagsterInstance) -> None:
    for pool in sorted(instance.event_log_storage.get_concurrency_keys()):
        holders = instance.event_log_storage.get_concurrency_info(pool).active_run_ids
        if holders:
            progress.noted(
                f"the pool {pool} is held by run {', '.join(sorted(holders))}, which this one will wait for; "
                "it is ended if its process dies; one of a machine that is gone, terminate on its page in citeloom ui"
            )
