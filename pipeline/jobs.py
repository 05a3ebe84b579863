"""Jobs over the assets. Not here: when they run (`sensors`)."""

from __future__ import annotations

import dagster as dg

# A job may not bear the name of an asset, hence the verb. It is what the schedule and the sensor start, and what
# `citeloom run` executes in process: 0.6 s of overhead a run, against 10 s for one process per step.
refresh_corpus = dg.define_asset_job(
    "refresh_corpus",
    selection=dg.AssetSelection.all(),
    description="Every stage of one month, from the zips to the report; what is up to date is kept.",
    executor_def=dg.in_process_executor,
)
