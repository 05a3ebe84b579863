"""The asset `metadata`."""

from __future__ import annotations

from assets.stage_asset import stage_asset
from pipeline.metadata.stages import METADATA

metadata = stage_asset(
    METADATA,
    group="corpus",
    description=(
        "What arXiv says of each page's paper: from the snapshot or the newer harvest, then from the rate-limited API "
        "for the rest."
    ),
    kinds=("parquet", "arxiv"),
    pool="arxiv_api",
)
