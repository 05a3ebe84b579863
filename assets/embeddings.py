"""The asset `embeddings`. Not here: the models (`pipeline.embedding`)."""

from __future__ import annotations

from assets.stage_asset import stage_asset
from pipeline.embedding.stages import EMBEDDINGS

embeddings = stage_asset(
    EMBEDDINGS,
    group="search",
    description="Dense and sparse vectors of every passage; vectors of unchanged text are reused.",
    kinds=("parquet", "torch"),
    pool="gpu",
)
