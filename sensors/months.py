"""Sensors that run new and changed months; the schedule of the checks."""

import json
from itertools import takewhile

import dagster as dg

from assets import MONTHS, OWNER_METADATA
from assets.jobs import check_months, finish_months, refresh_corpus
from pipeline.corpus.dump.catalogue import broken_zips, months_in_dump
from pipeline.corpus.sources.archives import months_of_sources
from pipeline.corpus.sources.stage import PAGES
from pipeline.corpus.stages import DUMP_MEMBERS
from pipeline.engine.finish import unfinished_stages
from pipeline.engine.run import State, fingerprint, state
from pipeline.engine.stage import Workspace
from pipeline.errors import CiteloomError
from pipeline.stages import STAGES
from resources.dead_runs import UNFINISHED

_SENSOR_TAG, _PARTITION_TAG = "dagster/sensor_name", "dagster/partition"
# With Dagster's own retry of each run, a month is started three times more.
_MOST_DEAD_RUNS = 8


def month_fingerprints(workspace: Workspace) -> dict[str, str]:
    """Month of the dump → fingerprint of its pages now, or of its sources while these are to be
    converted: the pages of a conversion under way come one by one.
    """
    fingerprints = {}
    with workspace.read_cache():
        months, of_sources = (
            months_in_dump(workspace.settings),
            months_of_sources(workspace.settings.sources),
        )
        for month in months:
            to_convert = month in of_sources and state(PAGES, workspace, month) is not State.DONE
            stage = PAGES if to_convert else DUMP_MEMBERS
            fingerprints[month] = fingerprint(stage, workspace, month).fingerprint
    return fingerprints


def months_without_a_step(instance: dg.DagsterInstance) -> set[str]:
    """Months that `dump_folder` started, and whose newest runs failed before their first step.

    No stage records such a failure, so nothing else would start the month again. A month with
    `_MOST_DEAD_RUNS` such runs in a row is left out.
    """

    def is_dead(run: dg.DagsterRun) -> bool:
        failed = run.status is dg.DagsterRunStatus.FAILURE
        return failed and not instance.all_logs(run.run_id, of_type=dg.DagsterEventType.STEP_START)

    failed_runs = instance.get_runs(
        dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE], tags={_SENSOR_TAG: dump_folder.name})
    )
    months = set()
    for month in {run.tags[_PARTITION_TAG] for run in failed_runs}:
        of_month = dg.RunsFilter(tags={_PARTITION_TAG: month})
        newest = instance.get_runs(of_month, limit=_MOST_DEAD_RUNS)
        dead_runs = len(list(takewhile(is_dead, newest)))
        if 0 < dead_runs < _MOST_DEAD_RUNS:
            months.add(month)
    return months


@dg.sensor(
    job=refresh_corpus,
    minimum_interval_seconds=300,
    description=(
        "Starts a run for every month of the dump that is new, whose pages or sources have changed,"
        " or whose run died before its first step."
    ),
    metadata=OWNER_METADATA,
    tags={"citeloom/starts": "runs"},
)
def dump_folder(
    context: dg.SensorEvaluationContext, workspace: dg.ResourceParam[Workspace]
) -> dg.SensorResult | dg.SkipReason:
    """Starts a run for every month of the dump that is new, whose pages have changed, or whose run
    died before its first step.
    """
    earlier = json.loads(context.cursor or "{}")
    try:
        in_dump = month_fingerprints(workspace)
        faults = broken_zips(workspace.settings)
    except CiteloomError as error:
        return dg.SkipReason(str(error))
    for fault in faults:
        context.log.warning(fault)
    current = {month: mark for month, mark in in_dump.items() if MONTHS.has_partition_key(month)}
    if in_dump.keys() != current.keys():
        others = ", ".join(sorted(in_dump.keys() - current.keys()))
        context.log.warning(f"months of the dump that have not come yet are left out: {others}")
    changed = {month: mark for month, mark in current.items() if earlier.get(month) != mark}
    dead = months_without_a_step(context.instance) & current.keys()
    if not changed and not dead:
        return dg.SkipReason("\n".join([f"no change in the {len(earlier)} months", *faults]))
    # No run_key: Dagster never runs one twice, and pages may come and go twice. A run too many
    # finds all of it done.
    requests = [dg.RunRequest(partition_key=month) for month in sorted(changed.keys() | dead)]
    return dg.SensorResult(
        run_requests=requests, cursor=json.dumps({**earlier, **changed}, sort_keys=True)
    )


# On by default: else the overall report page would lack the months of Dagster's runs.
@dg.sensor(
    job=finish_months,
    minimum_interval_seconds=60,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Makes the overall report page once no run is in progress.",
    metadata=OWNER_METADATA,
    tags={"citeloom/starts": "runs"},
)
def computed_months(
    context: dg.SensorEvaluationContext, workspace: dg.ResourceParam[Workspace]
) -> dg.RunRequest | dg.SkipReason:
    """Starts one run of `finish_months` after the months of a backfill or of a command.

    A command finishes its months itself; where it computes one at least each minute, this sensor
    leaves it alone.
    """
    try:
        due = json.dumps(unfinished_stages(workspace, STAGES), sort_keys=True)
    except CiteloomError as error:
        return dg.SkipReason(str(error))
    earlier = context.cursor
    context.update_cursor(due)
    if due == json.dumps({}):
        return dg.SkipReason("every stage is finished")
    if due != earlier:
        return dg.SkipReason("a month has been computed since the last look")
    if context.instance.get_runs(
        dg.RunsFilter(statuses=[*UNFINISHED, dg.DagsterRunStatus.QUEUED]), limit=1
    ):
        return dg.SkipReason("runs are in progress")
    # A finish that failed is not tried again until another month is computed.
    return dg.RunRequest(run_key=due)


# Two seconds of work for 424 months; on by default, since a check that never runs reports nothing.
hourly_check = dg.ScheduleDefinition(
    name="hourly_check",
    job=check_months,
    cron_schedule="30 * * * *",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Reports which months failed or are out of date, and whether the newest is there.",
    metadata=OWNER_METADATA,
    tags={"citeloom/starts": "checks"},
)
