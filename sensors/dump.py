"""The sensor that sees new zips and new or changed months in the dump folder. Not here: reading zips."""

import json
from collections.abc import Mapping

import dagster as dg

from pipeline.corpus.dump.catalogue import months_in_dump
from pipeline.corpus.members import DUMP_MEMBERS
from pipeline.errors import CiteloomError
from pipeline.jobs import refresh_corpus
from pipeline.stages import Workspace, fingerprint


def changed_months(workspace: Workspace, seen: Mapping[str, str]) -> dict[str, str]:
    """Months of the dump whose pages differ from those `seen`, each with the fingerprint of its pages now."""
    now = {
        month: fingerprint(DUMP_MEMBERS, workspace, month).fingerprint for month in months_in_dump(workspace.settings)
    }
    return {month: mark for month, mark in now.items() if seen.get(month) != mark}


@dg.sensor(job=refresh_corpus, minimum_interval_seconds=300)
def dump_folder(
    context: dg.SensorEvaluationContext, workspace: dg.ResourceParam[Workspace]
) -> dg.SensorResult | dg.SkipReason:
    """Starts a refresh for every month of the dump that is new or whose pages have changed."""
    seen = json.loads(context.cursor or "{}")
    try:
        changed = changed_months(workspace, seen)
    except CiteloomError as error:
        return dg.SkipReason(str(error))
    if not changed:
        return dg.SkipReason(f"all {len(seen)} months of the dump are as they were")
    # No run_key: Dagster never runs one twice, and pages may come and go twice. A run too many finds all of it done.
    requests = [dg.RunRequest(partition_key=month) for month in changed]
    return dg.SensorResult(run_requests=requests, cursor=json.dumps({**seen, **changed}, sort_keys=True))
