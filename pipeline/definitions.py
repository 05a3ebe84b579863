"""What Dagster loads: assets, checks, jobs, schedules, sensors and resources."""

from __future__ import annotations

import dagster as dg

from assets import operations
from assets.catalogue import STAGE_ASSETS
from assets.checks import build_check
from assets.jobs import check_months, find_changes, refresh_corpus
from assets.placement import choose_executor, definition_time_settings
from assets.stage_asset import build_asset
from pipeline.errors import SettingError
from pipeline.ops.checks import CHECKS
from pipeline.settings import Settings, load_settings
from resources.workspace import WorkspaceResource
from sensors.dump import dump_folder
from sensors.failures import failed_runs
from sensors.months import hourly_check
from sensors.refresh import refresh_schedule, refreshed_months


def build_defs(**overrides: object) -> dg.Definitions:
    """All definitions; `overrides` replace resources by name, for tests."""
    settings = definition_time_settings()
    assets = [build_asset(asset, settings) for asset in STAGE_ASSETS]
    checks = [build_check(check, settings) for check in CHECKS]
    return dg.Definitions(
        assets=[*assets, operations.arxiv_changes, operations.months],
        asset_checks=[*checks, *dg.load_asset_checks_from_modules([operations])],
        jobs=[refresh_corpus, find_changes, check_months],
        schedules=[refresh_schedule(_refresh_cron()), hourly_check],
        sensors=[dump_folder, refreshed_months, failed_runs],
        resources={"workspace": WorkspaceResource(), **overrides},
        executor=choose_executor(settings),
    )


def _refresh_cron() -> str:
    """When the schedule is due. Where another setting is wrong, each run names it, and the UI opens all the same."""
    try:
        return load_settings().refresh_cron
    except SettingError:
        return str(Settings.model_fields["refresh_cron"].default)


defs = build_defs()
