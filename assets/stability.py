"""The asset `stability`."""

from __future__ import annotations

from assets.stage_asset import stage_asset
from pipeline.evaluation.stages import STABILITY

stability = stage_asset(
    STABILITY,
    group="evaluation",
    description=(
        "ChatCite with and without reflection, written again with other samples and in other orders of references. "
        "Without rows unless CITELOOM_STABILITY_TASKS says on how many tasks."
    ),
    kinds=("parquet", "openai"),
    pool="llm",
)
