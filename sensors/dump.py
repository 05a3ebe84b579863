"""The sensor that sees new zips and new or changed months in the dump folder."""

import json

import dagster as dg

from assets import OWNER_METADATA
from assets.jobs import refresh_corpus
from assets.partitions import offer_months
from pipeline.corpus.dump.catalogue import months_in_dump
from pipeline.corpus.stages import DUMP_MEMBERS
from pipeline.engine.run import fingerprint
from pipeline.engine.stage import Workspace
from pipeline.errors import CiteloomError

# Dagster runs a month that failed twice more, from the failed step on. The cursor holds what was asked for, not how it
# ended, so without this a month would be left until its pages change again.
_RETRIES = {"dagster/max_retries": "2", "dagster/retry_on_asset_or_op_failure": "true"}


def month_fingerprints(workspace: Workspace) -> dict[str, str]:
    """Month of the dump → fingerprint of its pages now."""
    months = months_in_dump(workspace.settings)
    return {month: fingerprint(DUMP_MEMBERS, workspace, month).fingerprint for month in months}


@dg.sensor(
    job=refresh_corpus,
    minimum_interval_seconds=300,
    description="Starts a run for every month of the dump that is new or whose pages have changed.",
    metadata=OWNER_METADATA,
    tags={"citeloom/starts": "runs"},
)
def dump_folder(
    context: dg.SensorEvaluationContext, workspace: dg.ResourceParam[Workspace]
) -> dg.SensorResult | dg.SkipReason:
    """Starts a run for every month of the dump that is new or whose pages have changed."""
    seen = json.loads(context.cursor or "{}")
    try:
        current = month_fingerprints(workspace)
    except CiteloomError as error:
        return dg.SkipReason(str(error))
    changed = {month: mark for month, mark in current.items() if seen.get(month) != mark}
    if not changed:
        return dg.SkipReason(f"no change in the {len(seen)} months of the dump")
    offer_months(context.instance, changed)
    # No run_key: Dagster never runs one twice, and pages may come and go twice. A run too many finds all of it done.
    requests = [dg.RunRequest(partition_key=month, tags=_RETRIES) for month in sorted(changed)]
    return dg.SensorResult(run_requests=requests, cursor=json.dumps({**seen, **changed}, sort_keys=True))
