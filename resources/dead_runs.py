"""Runs of Dagster whose process is gone.

It imports nothing of the pipeline, so the code server `citeloom_monitoring` starts with half the
work, and goes on where the pipeline cannot be imported.
"""

import dagster as dg
import psutil

UNFINISHED = (
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
)
# The clocks of an event and of a process's start differ by less.
_CLOCK_TOLERANCE_SECONDS = 2.0


def dead_runs(instance: dg.DagsterInstance) -> list[dg.DagsterRun]:
    """The unfinished runs whose process has ended.

    Only of runs that Dagster's default launcher started: their processes are on this machine,
    beside the code server.
    """
    if not isinstance(instance.run_launcher, dg.DefaultRunLauncher):
        return []
    runs = instance.get_runs(dg.RunsFilter(statuses=list(UNFINISHED)))
    return [run for run in runs if _process_is_gone(instance, run.run_id)]


def _process_is_gone(instance: dg.DagsterInstance, run_id: str) -> bool:
    """Whether the process that a run's events name has ended; False while they name none.

    A process that began after the event has the number of one that is gone.
    """
    for entry in instance.all_logs(run_id, of_type=dg.DagsterEventType.ENGINE_EVENT):
        event = entry.dagster_event
        pid = event.engine_event_data.metadata.get("pid") if event else None
        if pid is not None:
            try:
                began = psutil.Process(int(str(pid.value))).create_time()
            except psutil.NoSuchProcess:
                return True
            return bool(began > entry.timestamp + _CLOCK_TOLERANCE_SECONDS)
    return False
