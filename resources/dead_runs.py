"""Runs of Dagster whose process is gone, as after a crash of the machine, are ended.

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


def end_dead_runs(instance: dg.DagsterInstance) -> list[str]:
    """Fail unfinished runs whose process is gone, or cancel those that were being cancelled, and
    free the pool slots of every run that has ended. Returns the ids of the runs that it ended.
    """
    dead = dead_runs(instance)
    for run in dead:
        if run.status is dg.DagsterRunStatus.CANCELING:
            instance.report_run_canceled(
                run, "the process that was to end it is gone; finished stages stay"
            )
        else:
            instance.report_run_failed(run, "the process that ran it is gone; finished stages stay")
    events = instance.event_log_storage
    for run_id in events.get_concurrency_run_ids():
        holder = instance.get_run_by_id(run_id)
        if holder is None or holder.is_finished:
            events.free_concurrency_slots_for_run(run_id)
    return [run.run_id for run in dead]


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
