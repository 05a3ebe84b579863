"""The asset `scores`. Not here: the metrics (`pipeline.evaluation`)."""

from __future__ import annotations

from assets.stage_asset import stage_asset
from pipeline.evaluation.stages import SCORES

scores = stage_asset(
    SCORES,
    group="evaluation",
    description="ROUGE against the gold section, and the G-Score: six criteria and a vote, all systems at once.",
    kinds=("parquet", "openai"),
    pool="llm",
)
