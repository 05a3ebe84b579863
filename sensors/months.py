"""The schedule that checks all months."""

import dagster as dg

from assets.jobs import check_months

# A minute of work for 400 months; on by default, since a check that never runs reports nothing.
hourly_check = dg.ScheduleDefinition(
    name="hourly_check",
    job=check_months,
    cron_schedule="30 * * * *",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Reports which months failed or are out of date, and whether the newest is there.",
)
