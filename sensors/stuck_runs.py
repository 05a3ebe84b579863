"""The sensor that fails runs whose process is gone, as after a crash of the machine.

Dagster's default launcher has no health check, so such a run would stay STARTED and hold its pools'
slots. Once it has failed, run monitoring frees the slots (`free_slots_after_run_end_seconds` in
dagster.yaml).
"""

import dagster as dg

from assets import OWNER_METADATA
from resources.dead_runs import dead_runs


# On by default: a stuck run holds its pools' slots, so that nothing else runs until it is ended.
@dg.sensor(
    minimum_interval_seconds=30,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description=(
        "Fails runs that are unfinished though their process is gone, so that their pool slots are"
        " freed."
    ),
    metadata=OWNER_METADATA,
    tags={"citeloom/starts": "nothing"},
)
def stuck_runs(context: dg.SensorEvaluationContext) -> dg.SkipReason:
    """Fails unfinished runs whose process is gone; cancels those that were being cancelled."""
    dead = dead_runs(context.instance)
    for run in dead:
        if run.status is dg.DagsterRunStatus.CANCELING:
            context.instance.report_run_canceled(
                run, "the process that was to end it is gone; finished stages stay"
            )
        else:
            context.instance.report_run_failed(
                run, "the process that ran it is gone; finished stages stay"
            )
    ids = ", ".join(run.run_id for run in dead)
    return dg.SkipReason(f"ended {ids}" if dead else "every unfinished run has its process")


# A code location of its own (workspace.yaml): sensors of the main one do not run once its server is
# gone.
defs = dg.Definitions(sensors=[stuck_runs])
