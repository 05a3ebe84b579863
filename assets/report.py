"""The asset `report`. Not here: the pages (`pipeline.evaluation.report`)."""

from __future__ import annotations

from assets.stage_asset import stage_asset
from pipeline.evaluation.stages import REPORT

report = stage_asset(
    REPORT,
    group="evaluation",
    description="The month's report: a static folder of pages that works from disk.",
    kinds=("html",),
)
