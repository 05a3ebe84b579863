"""The schedule that refreshes the corpus, and the sensor that starts what follows.

    schedule → run of find_changes: harvest, months that are due
    sensor   → a run for each of these months, up to the index, tasks and questions
    sensor   → a run for each month that succeeded, of the stages below
    sensors  → a run of summarize_refresh, once all of these have ended

Each month is a run of its own, so that months queue, fail and are retried independently.
"""

from collections.abc import Mapping, Sequence

import dagster as dg

from assets import MONTHS, OWNER_METADATA
from assets.jobs import find_changes, refresh_corpus, summarize_refresh
from pipeline.engine.stage import Stage, Workspace
from pipeline.engine.status import stages_due
from pipeline.ops.refresh.plan import corpus_stages_of, downstream, stages_in_use, token_limit
from pipeline.stages import choose_stages
from resources.services import LLM_BUDGET_TAG, LLM_TOKENS_TAG

# Which part of a refresh a run is: `corpus`, or `downstream`.
PART_TAG = "citeloom/refresh"
# The stages that the refresh keeps up to date, with commas between, as they were when it began: on
# a new data root its first runs leave tables of the corpus alone.
STAGES_TAG = "citeloom/refresh_stages"


def refresh_schedule(cron: str) -> dg.ScheduleDefinition:
    """The schedule; cron: five fields, in UTC."""
    return dg.ScheduleDefinition(
        name="refresh",
        job=find_changes,
        cron_schedule=cron,
        metadata=OWNER_METADATA,
        tags={"citeloom/starts": "runs"},
        description="Ask arXiv what changed, then run the months that changed and no others.",
    )


# On by default, as the next sensor: they do nothing unless the schedule has started something.
@dg.run_status_sensor(
    run_status=dg.DagsterRunStatus.SUCCESS,
    monitored_jobs=[find_changes, refresh_corpus],
    request_jobs=[refresh_corpus, summarize_refresh],
    default_status=dg.DefaultSensorStatus.RUNNING,
    description=(
        "Starts the next part of a refresh: months that changed, stages below their index, the"
        " summary."
    ),
    tags={"citeloom/starts": "runs"},
    metadata=OWNER_METADATA,
)
def refreshed_months(
    context: dg.RunStatusSensorContext, workspace: dg.ResourceParam[Workspace]
) -> list[dg.RunRequest] | dg.SkipReason:
    """Starts the next part of a refresh: changed months, stages below the index, summary."""
    run = context.dagster_run
    if run.job_name == find_changes.name:
        stages = stages_in_use(workspace)
        of_corpus = corpus_stages_of(stages)
        tags = {STAGES_TAG: ",".join(stage.name for stage in stages)}
        return [_request(run, month, "corpus", of_corpus, tags) for month in _months(context)]
    if run.tags.get(PART_TAG) == "corpus":
        month, tokens = run.tags["dagster/partition"], token_limit(workspace.settings)
        names = [name for name in run.tags.get(STAGES_TAG, "").split(",") if name]
        in_use = choose_stages(select=names) if names else stages_in_use(workspace)
        due = stages_due(in_use, workspace, month)
        below = downstream(workspace, month, due, redo=tokens > 0)
        if below.run:
            tags = {LLM_TOKENS_TAG: str(tokens)} if tokens else {}
            return [_request(run, month, "downstream", below.run, tags)]
    return _request_summary(context)


@dg.run_failure_sensor(
    monitored_jobs=[refresh_corpus],
    request_job=summarize_refresh,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Starts the summary of a refresh where the last of its runs failed.",
    tags={"citeloom/starts": "runs"},
    metadata=OWNER_METADATA,
)
def failed_refreshes(context: dg.RunFailureSensorContext) -> list[dg.RunRequest] | dg.SkipReason:
    """Starts the summary of a refresh where the last of its runs failed."""
    return _request_summary(context)


def _request_summary(context: dg.RunStatusSensorContext) -> list[dg.RunRequest] | dg.SkipReason:
    """Request the summary where no other run of the refresh is unfinished.

    A run that is requested in the same tick is not seen: the summary is written again at its end.
    """
    run = context.dagster_run
    if PART_TAG not in run.tags:
        return dg.SkipReason(f"run {run.run_id} belongs to no refresh")
    of_refresh = dg.RunsFilter(tags={LLM_BUDGET_TAG: run.tags[LLM_BUDGET_TAG]})
    unfinished = [other for other in context.instance.get_runs(of_refresh) if not other.is_finished]
    if any(other.run_id != run.run_id for other in unfinished):
        return dg.SkipReason(f"{len(unfinished)} runs of the refresh have not ended")
    return [dg.RunRequest(run_key=f"{run.run_id}-summary", job_name=summarize_refresh.name)]


def _months(context: dg.RunStatusSensorContext) -> list[str]:
    """The months that the run found due."""
    kind = dg.DagsterEventType.ASSET_MATERIALIZATION
    due: list[str] = []
    for entry in context.instance.all_logs(context.dagster_run.run_id, of_type=kind):
        event = entry.dagster_event
        if event:
            metadata = event.step_materialization_data.materialization.metadata
            months = metadata["months"].value
            if isinstance(months, list):
                due += filter(MONTHS.has_partition_key, map(str, months))
    return due


def _request(
    run: dg.DagsterRun, month: str, part: str, stages: Sequence[Stage], tags: Mapping[str, str]
) -> dg.RunRequest:
    """A run of some stages of a month, requested once for each run that it follows. All runs of a
    refresh share one budget, named after the run that the schedule started.
    """
    budget = run.tags.get(LLM_BUDGET_TAG, f"refresh {run.run_id}")
    return dg.RunRequest(
        run_key=f"{run.run_id}-{month}",
        job_name=refresh_corpus.name,
        partition_key=month,
        asset_selection=[dg.AssetKey(stage.name) for stage in stages],
        tags={PART_TAG: part, LLM_BUDGET_TAG: budget, **tags},
    )
