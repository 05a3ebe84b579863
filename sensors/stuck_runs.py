"""The sensor that ends runs whose process is gone."""

from pathlib import Path

import dagster as dg

from pipeline.running.run_process import end_dead_runs


# On by itself: a run that is stuck holds its pools' slots, so that nothing else runs until it is ended.
@dg.sensor(minimum_interval_seconds=30, default_status=dg.DefaultSensorStatus.RUNNING)
def stuck_runs(context: dg.SensorEvaluationContext) -> dg.SkipReason:
    """Ends runs that show as running though their process is gone, as after a crash of the machine."""
    ended = end_dead_runs(context.instance, Path(context.instance.root_directory))
    return dg.SkipReason(f"ended {', '.join(ended)}" if ended else "every unfinished run has its process")
