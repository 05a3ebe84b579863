"""The sensor that fails runs whose process is gone, and frees their pool slots: Dagster's default
launcher has no health check, so such a run would stay STARTED.
"""

import dagster as dg

from assets import OWNER_METADATA
from resources.dead_runs import end_dead_runs


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
    """Fails unfinished runs whose process is gone, and frees their pool slots."""
    ended = end_dead_runs(context.instance)
    return dg.SkipReason(
        f"ended {', '.join(ended)}" if ended else "every unfinished run has its process"
    )


# A code location of its own (workspace.yaml): sensors of the main one do not run once its server is
# gone.
defs = dg.Definitions(sensors=[stuck_runs])
