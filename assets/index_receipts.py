"""The asset `index_receipts`."""

from __future__ import annotations

from assets.stage_asset import stage_asset
from pipeline.index.stages import INDEX_RECEIPTS

index_receipts = stage_asset(
    INDEX_RECEIPTS,
    group="search",
    description="The month's points in the Qdrant collection, audited against the embeddings id by id.",
    kinds=("parquet", "qdrant"),
    pool="qdrant",
)
