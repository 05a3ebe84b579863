"""Jobs over the assets: a month through every stage, a harvest, checks over all months."""

from __future__ import annotations

import dagster as dg

from assets import OWNER_METADATA

_CHECKS_OF_ALL_MONTHS = dg.AssetSelection.checks_for_assets("months")
# With its checks: a materialization without them would hide their last results.
_ALL_MONTHS = dg.AssetSelection.assets("months") | _CHECKS_OF_ALL_MONTHS
_HARVEST = dg.AssetSelection.assets("arxiv_changes")
_SUMMARY = dg.AssetSelection.assets("refresh_summary")

# A job must not have the name of an asset, hence the verb. The schedule, the sensors and backfills
# start it, with the executor of the definitions.
refresh_corpus = dg.define_asset_job(
    "refresh_corpus",
    selection=dg.AssetSelection.all() - _ALL_MONTHS - _HARVEST - _SUMMARY,
    description=(
        "Every stage of one month, from the zips to the report; what is up to date is skipped."
    ),
    metadata=OWNER_METADATA,
)

# A run and not the tick of a schedule, which Dagster ends after a minute; `sensors.refresh` starts
# what follows.
find_changes = dg.define_asset_job(
    "find_changes",
    selection=_HARVEST,
    description="Ask arXiv what changed, and find the months to refresh; their runs follow.",
    metadata=OWNER_METADATA,
    executor_def=dg.in_process_executor,
)

summarize_refresh = dg.define_asset_job(
    "summarize_refresh",
    selection=_SUMMARY,
    description="Count what the last refresh changed, once its runs have ended.",
    metadata=OWNER_METADATA,
    executor_def=dg.in_process_executor,
)

finish_months = dg.define_asset_job(
    "finish_months",
    selection=_ALL_MONTHS,
    description="The overall report page, once months have run, and the checks over all months.",
    metadata=OWNER_METADATA,
    executor_def=dg.in_process_executor,
)

# A job of its own: in each of a backfill's runs these checks would take as long as a small month.
check_months = dg.define_asset_job(
    "check_months",
    selection=_CHECKS_OF_ALL_MONTHS,
    description="Which months failed or are out of date now, and whether the newest is there.",
    metadata=OWNER_METADATA,
    executor_def=dg.in_process_executor,
)
