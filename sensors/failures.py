"""The sensor that notifies CITELOOM_WEBHOOK_URL of failed runs."""

from collections.abc import Sequence

import dagster as dg

from assets import OWNER_METADATA
from pipeline.engine.stage import Workspace
from pipeline.engine.webhook import post
from pipeline.text import one_line


# On by default, since without an address it does nothing. The command line posts its own failures.
@dg.run_failure_sensor(
    default_status=dg.DefaultSensorStatus.RUNNING,
    minimum_interval_seconds=30,
    description="Sends a message to CITELOOM_WEBHOOK_URL for each run that failed.",
    tags={"citeloom/starts": "nothing"},
    metadata=OWNER_METADATA,
)
def failed_runs(
    context: dg.RunFailureSensorContext, workspace: dg.ResourceParam[Workspace]
) -> dg.SkipReason:
    """Sends a message for each failed run where an address is set."""
    url = workspace.settings.webhook_url
    if url is None:
        return dg.SkipReason("CITELOOM_WEBHOOK_URL is not set")
    reason = post(
        url,
        message_of(context.dagster_run, context.get_step_failure_events(), context.failure_event),
    )
    if reason:
        # Not an exception: the tick would fail again and again, and the failure itself is recorded
        # elsewhere.
        context.log.warning(f"CITELOOM_WEBHOOK_URL: a message was not sent: {reason}")
        return dg.SkipReason(f"no message was sent for run {context.dagster_run.run_id}: {reason}")
    return dg.SkipReason(f"sent a message for run {context.dagster_run.run_id}")


def message_of(run: dg.DagsterRun, steps: Sequence[dg.DagsterEvent], ended: dg.DagsterEvent) -> str:
    """The message for a failed run: month, failed assets with reasons, and what to do."""
    month = run.tags.get("dagster/partition")
    lines = [f"citeloom: {run.job_name} failed" + (f" for {month}" if month else "")]
    lines += [f"• {event.step_key or run.job_name}: {_reason(event)}" for event in steps or [ended]]
    lines.append(f"Run {run.run_id}.")
    if month:
        lines.append(f"Once the cause is fixed: citeloom run --failed --months {month}")
    return "\n".join(lines)


def _reason(event: dg.DagsterEvent) -> str:
    """The error that a step raised, without Dagster's wrapping; the event's message if unknown."""
    if not event.is_step_failure:
        return str(event.message)
    failure = event.step_failure_data
    if failure.user_failure_data is not None and failure.user_failure_data.description:
        return str(failure.user_failure_data.description)
    error = failure.error
    while error is not None and error.cause is not None:
        error = error.cause
    return one_line(error.message) if error is not None else str(event.message)
