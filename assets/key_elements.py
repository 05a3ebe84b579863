"""The asset `key_elements`."""

from __future__ import annotations

from assets.stage_asset import stage_asset
from pipeline.related_work.stages import KEY_ELEMENTS

key_elements = stage_asset(
    KEY_ELEMENTS,
    group="related_work",
    description="Seven key elements of every target and reference (ChatCite, figure 2).",
    kinds=("parquet", "openai"),
    pool="llm",
)
