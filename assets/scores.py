"""The asset `scores`."""

from __future__ import annotations

from assets.stage_asset import stage_asset
from pipeline.evaluation.stages import SCORES

scores = stage_asset(
    SCORES,
    group="evaluation",
    description="Every metric of every system on each task: ROUGE against the gold section, G-Score, citations.",
)
