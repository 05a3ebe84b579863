"""The asset `g_scores`."""

from __future__ import annotations

from assets.stage_asset import stage_asset
from pipeline.evaluation.stages import G_SCORES

g_scores = stage_asset(
    G_SCORES,
    group="evaluation",
    description=(
        "The G-Score: six marks and a vote, all systems of a task in one conversation as the paper has it; and what "
        "it did not ask: other orders, one by one, a second judge."
    ),
    kinds=("parquet", "openai"),
    pool="llm",
)
