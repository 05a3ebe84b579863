"""The sensor that sees new zips and new or changed months in the dump folder."""

import json
import time

import dagster as dg

from assets import OWNER_METADATA
from assets.jobs import refresh_corpus
from assets.partitions import offer_months
from pipeline.corpus.dump.catalogue import months_in_dump
from pipeline.corpus.stages import DUMP_MEMBERS
from pipeline.engine.run import fingerprint
from pipeline.engine.stage import Workspace
from pipeline.errors import CiteloomError

NAME = "dump_folder"
# Waits after the first failed run and after each further one: a full disk or a server that was down may be back. A
# month that still fails waits for the schedule's next refresh, or for a person.
RETRY_SECONDS = (3_600, 4 * 3_600, 16 * 3_600)
# Runs of this sensor that are examined, newest first: those of 400 months at once, and retries after them.
_RUNS = 1_000


def month_fingerprints(workspace: Workspace) -> dict[str, str]:
    """Month of the dump → fingerprint of its pages now."""
    months = months_in_dump(workspace.settings)
    return {month: fingerprint(DUMP_MEMBERS, workspace, month).fingerprint for month in months}


def months_to_retry(instance: dg.DagsterInstance, now: float) -> list[str]:
    """Months whose last runs of this sensor failed, and whose time has come. now: seconds since the epoch.

    The sensor's cursor holds what it asked for, not how it ended: without this, a month whose run failed would be left
    until its pages change again. A cancelled run was cancelled by a person, and is not asked for again.
    """
    records = instance.get_run_records(dg.RunsFilter(tags={"dagster/sensor_name": NAME}), limit=_RUNS)
    failures: dict[str, list[float]] = {}
    ended: set[str] = set()
    for record in records:  # newest first
        month = record.dagster_run.tags.get("dagster/partition", "")
        if month in ended:
            continue
        if record.dagster_run.status is dg.DagsterRunStatus.FAILURE:
            failures.setdefault(month, []).append(record.end_time or record.update_timestamp.timestamp())
        else:
            ended.add(month)  # it succeeded, is under way, or was cancelled: failures before it are of the past
    due = {month: times for month, times in failures.items() if len(times) <= len(RETRY_SECONDS)}
    return sorted(month for month, times in due.items() if now - times[0] >= RETRY_SECONDS[len(times) - 1])


@dg.sensor(
    job=refresh_corpus,
    name=NAME,
    minimum_interval_seconds=300,
    description="Starts a run for every month of the dump that is new or whose pages have changed; again where it "
    "failed.",
    metadata=OWNER_METADATA,
    tags={"citeloom/starts": "runs"},
)
def dump_folder(
    context: dg.SensorEvaluationContext, workspace: dg.ResourceParam[Workspace]
) -> dg.SensorResult | dg.SkipReason:
    """Starts a run for every month of the dump that is new or whose pages have changed; again where it failed."""
    seen = json.loads(context.cursor or "{}")
    try:
        current = month_fingerprints(workspace)
    except CiteloomError as error:
        return dg.SkipReason(str(error))
    changed = {month: mark for month, mark in current.items() if seen.get(month) != mark}
    months = sorted(changed.keys() | (current.keys() & months_to_retry(context.instance, time.time())))
    if not months:
        return dg.SkipReason(f"no change in the {len(seen)} months of the dump")
    offer_months(context.instance, months)
    # No run_key: Dagster never runs one twice, and pages may come and go twice. A run too many finds all of it done.
    requests = [dg.RunRequest(partition_key=month) for month in months]
    return dg.SensorResult(run_requests=requests, cursor=json.dumps({**seen, **changed}, sort_keys=True))
