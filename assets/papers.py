"""The asset `papers`. Not here: the parsers (`pipeline.corpus`)."""

from __future__ import annotations

from assets.stage_asset import stage_asset
from pipeline.corpus.stages import PAPERS

papers = stage_asset(
    PAPERS,
    group="corpus",
    description="Computer-science papers, parsed from pages read in place in the zip, with what each lost.\n\n"
    "Other categories are left out before any HTML is read.",
    kinds=("parquet", "html"),
)
