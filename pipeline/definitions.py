"""What Dagster loads: assets, checks, jobs, schedules, sensors and resources."""

from __future__ import annotations

from typing import Any

import dagster as dg

from assets import answers, corpus, evaluation, index, operations, related_work, report
from assets.jobs import (
    check_months,
    find_changes,
    finish_months,
    refresh_corpus,
    summarize_refresh,
)
from assets.placement import choose_executor, definition_time_settings
from resources.services import build_resources
from sensors.months import computed_months, dump_folder, hourly_check
from sensors.refresh import failed_refreshes, refresh_schedule, refreshed_months

GROUPS = (corpus, index, related_work, answers, evaluation, report, operations)
"""The modules of assets; each is a group in the Dagster UI, of the module's name."""


def build_defs(**overrides: Any) -> dg.Definitions:
    """All definitions.

    overrides: resources by name, for tests: `data_root`, `qdrant`, `llm`, `arxiv`, from which
    the workspace is made, or `workspace` as a whole.
    """
    settings = definition_time_settings()
    return dg.Definitions(
        assets=[
            asset
            for group in GROUPS
            for asset in dg.load_assets_from_modules(
                [group], group_name=group.__name__.rpartition(".")[2]
            )
        ],
        asset_checks=dg.load_asset_checks_from_modules(GROUPS),
        jobs=[refresh_corpus, find_changes, summarize_refresh, finish_months, check_months],
        schedules=[refresh_schedule(settings.refresh_cron), hourly_check],
        sensors=[
            dump_folder,
            computed_months,
            refreshed_months,
            failed_refreshes,
        ],
        resources=build_resources(**overrides),
        executor=choose_executor(settings),
    )


defs = build_defs()
