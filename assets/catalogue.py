"""All stages as assets."""

from __future__ import annotations

from assets.details import DETAILS
from assets.stage_asset import StageAsset
from pipeline.stage_list import STAGE_LIST
from pipeline.stages import STAGES

STAGE_ASSETS = tuple(
    StageAsset(stage, entry, DETAILS.get(stage.name))
    for entry, stage in zip(STAGE_LIST, STAGES, strict=True)
)
