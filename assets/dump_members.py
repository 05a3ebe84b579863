"""The asset `dump_members`. Not here: reading zips (`pipeline.corpus.zips`)."""

from __future__ import annotations

from assets.stage_asset import stage_asset
from pipeline.corpus.members import DUMP_MEMBERS

dump_members = stage_asset(
    DUMP_MEMBERS,
    group="corpus",
    description="Pages of the ar5iv zips, from their central directories: no page is read.",
    kinds=("parquet", "zip"),
)
