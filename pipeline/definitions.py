"""What Dagster loads: assets, checks, jobs, schedules, sensors and resources."""

from __future__ import annotations

from typing import Any

import dagster as dg

from assets import operations
from assets.checks import build_check
from assets.jobs import (
    check_months,
    find_changes,
    finish_months,
    refresh_corpus,
    summarize_refresh,
)
from assets.placement import choose_executor, definition_time_settings
from assets.stage_asset import build_asset, disabled_reason
from pipeline.stages import STAGES
from resources.services import build_resources
from sensors.months import computed_months, dump_folder, hourly_check, new_months
from sensors.refresh import failed_refreshes, refresh_schedule, refreshed_months


def build_defs(**overrides: Any) -> dg.Definitions:
    """All definitions.

    overrides: resources by name, for tests: `data_root`, `qdrant`, `llm`, `arxiv`, from which
    the workspace is made, or `workspace` as a whole.
    """
    settings = definition_time_settings()
    enabled = [stage for stage in STAGES if not disabled_reason(stage, settings)]
    return dg.Definitions(
        assets=[
            *(build_asset(stage, settings) for stage in STAGES),
            operations.arxiv_changes,
            operations.refresh_summary,
            operations.months,
        ],
        asset_checks=[
            *(build_check(stage, check, settings) for stage in enabled for check in stage.checks),
            *dg.load_asset_checks_from_modules([operations]),
        ],
        jobs=[refresh_corpus, find_changes, summarize_refresh, finish_months, check_months],
        schedules=[refresh_schedule(settings.refresh_cron), hourly_check],
        sensors=[
            dump_folder,
            new_months,
            computed_months,
            refreshed_months,
            failed_refreshes,
        ],
        resources=build_resources(**overrides),
        executor=choose_executor(settings),
    )


defs = build_defs()
