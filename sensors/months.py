"""The sensor that offers new months as partitions, and the schedule that checks all months."""

import dagster as dg

from assets import OWNER_METADATA
from assets.jobs import check_months
from assets.partitions import offer_months
from pipeline.engine.stage import Workspace
from pipeline.errors import CiteloomError
from pipeline.ops.run_months import months_of_status


# On by default: without it nobody could choose a month that no command has run yet.
@dg.sensor(
    minimum_interval_seconds=300,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Offers the months of the dump and of the data root as partitions.",
    metadata=OWNER_METADATA,
    tags={"citeloom/starts": "nothing"},
)
def new_months(context: dg.SensorEvaluationContext, workspace: dg.ResourceParam[Workspace]) -> dg.SkipReason:
    """Offers the months of the dump and of the data root as partitions."""
    try:
        months, _ = months_of_status(workspace, "all")
    except CiteloomError as error:
        return dg.SkipReason(str(error))
    offer_months(context.instance, months)
    return dg.SkipReason(f"{len(months)} months are offered")


# A minute of work for 400 months; on by default, since a check that never runs reports nothing.
hourly_check = dg.ScheduleDefinition(
    name="hourly_check",
    job=check_months,
    cron_schedule="30 * * * *",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Reports which months failed or are out of date, and whether the newest is there.",
    metadata=OWNER_METADATA,
    tags={"citeloom/starts": "checks"},
)
