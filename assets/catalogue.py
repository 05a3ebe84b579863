"""All stages as assets."""

from __future__ import annotations

from assets.details import DETAILS
from assets.stage_asset import StageAsset
from pipeline.stages import STAGES

STAGE_ASSETS = tuple(StageAsset(stage, DETAILS.get(stage.name)) for stage in STAGES)
