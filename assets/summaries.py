"""The asset `summaries`. Not here: the systems (`pipeline.related_work`)."""

from __future__ import annotations

from assets.stage_asset import stage_asset
from pipeline.related_work.stages import SUMMARIES

summaries = stage_asset(
    SUMMARIES,
    group="related_work",
    description=(
        "Related work by ChatCite, its ablations, the baselines and our grounded variant, with the trace of "
        "every draft and vote."
    ),
    kinds=("parquet", "openai"),
    pool="llm",
)
