"""The asset `citation_support`."""

from __future__ import annotations

from assets.stage_asset import stage_asset
from pipeline.evaluation.stages import CITATION_SUPPORT

citation_support = stage_asset(
    CITATION_SUPPORT,
    group="evaluation",
    description="Whether what a sentence says of a cited work stands there: a verdict with the words it rests on.",
    kinds=("parquet", "openai"),
    pool="llm",
)
