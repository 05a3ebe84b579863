"""The asset `dump_members`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dagster as dg

from assets.shown import markdown_table
from assets.stage_asset import stage_asset
from pipeline import tables
from pipeline.corpus.members import DUMP_MEMBERS
from pipeline.engine.stage import Workspace


def pages_by_subset(workspace: Workspace, month: str) -> Mapping[str, Any]:
    """How many pages of the month each subset and zip holds, and their sizes, as a table."""
    members = workspace.root.read(tables.DUMP_MEMBERS, month, ["subset", "zip", "bytes", "compressed_bytes"])
    sums = members.group_by(["subset", "zip"]).aggregate(
        [("bytes", "count"), ("bytes", "sum"), ("compressed_bytes", "sum")]
    )
    rows = [
        (
            row["subset"],
            row["zip"],
            f"{row['bytes_count']:,}",
            *_megabytes(row["bytes_sum"], row["compressed_bytes_sum"]),
        )
        for row in sums.sort_by([("subset", "ascending"), ("zip", "ascending")]).to_pylist()
    ]
    return {"subsets": dg.MetadataValue.md(markdown_table(("subset", "zip", "pages", "MB", "MB in the zip"), rows))}


def _megabytes(*sizes: int) -> list[str]:
    return [f"{size / 1e6:,.1f}" for size in sizes]


dump_members = stage_asset(
    DUMP_MEMBERS,
    group="corpus",
    description="Pages of the ar5iv zips, from their central directories, and loose pages beside them.",
    kinds=("parquet", "zip"),
    extras=pages_by_subset,
)
