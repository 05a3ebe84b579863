"""The asset `embeddings`."""

from __future__ import annotations

from assets import placement
from assets.stage_asset import stage_asset
from pipeline.embedding.stages import EMBEDDINGS

embeddings = stage_asset(
    EMBEDDINGS,
    group="search",
    description="Dense and sparse vectors of every passage. Vectors of a text that did not change are reused, and a "
    "month whose run was interrupted is taken up where it ended.",
    kinds=("parquet", "torch"),
    pool=placement.device_pool(placement.definition_time_settings()),
    tags=placement.gpu_tags(placement.definition_time_settings()),
)
