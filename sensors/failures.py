"""The sensor that notifies CITELOOM_WEBHOOK_URL of failed runs."""

from collections.abc import Sequence

import dagster as dg

from assets import OWNER_METADATA
from pipeline.engine.stage import Workspace
from pipeline.ops.webhook import post


# On by default, since without an address it does nothing. The command line posts its own failures.
@dg.run_failure_sensor(
    default_status=dg.DefaultSensorStatus.RUNNING,
    minimum_interval_seconds=30,
    description="Sends a message to CITELOOM_WEBHOOK_URL for each run that failed.",
    tags={"citeloom/starts": "nothing"},
    metadata=OWNER_METADATA,
)
def failed_runs(context: dg.RunFailureSensorContext, workspace: dg.ResourceParam[Workspace]) -> dg.SkipReason:
    """Sends a message for each run that failed, with what failed and how to go on, where an address is set."""
    url = workspace.settings.webhook_url
    if url is None:
        return dg.SkipReason("CITELOOM_WEBHOOK_URL is not set")
    reason = post(url, message_of(context.dagster_run, context.get_step_failure_events(), context.failure_event))
    if reason:
        # Not an exception: the tick would fail again and again, and the failure itself is recorded elsewhere.
        context.log.warning(f"CITELOOM_WEBHOOK_URL: a message was not sent: {reason}")
        return dg.SkipReason(f"no message was sent for run {context.dagster_run.run_id}: {reason}")
    return dg.SkipReason(f"sent a message for run {context.dagster_run.run_id}")


def message_of(run: dg.DagsterRun, steps: Sequence[dg.DagsterEvent], ended: dg.DagsterEvent) -> str:
    """The message for a failed run: its month, each asset that failed with the reason, and what to do."""
    month = run.tags.get("dagster/partition")
    lines = [f"citeloom: {run.job_name} failed" + (f" for {month}" if month else "")]
    for step in steps or [ended]:
        raised = step.step_failure_data.user_failure_data if step.is_step_failure else None
        reason = raised.description if raised is not None else None
        lines.append(f"• {step.step_key or run.job_name}: {reason or step.message}")
    lines.append(f"Run {run.run_id}.")
    if month:
        lines.append(f"Once the cause is fixed: citeloom retry-failed --months {month}")
    return "\n".join(lines)
