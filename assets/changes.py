"""The asset `changes`: what became of a month's papers since the last refresh.

It comes after every other asset of a run: it also tells which tables of language models are out of date by then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dagster as dg

from assets.shown import markdown_table
from assets.stage_asset import stage_asset
from pipeline import tables
from pipeline.engine.stage import Workspace
from pipeline.ops.refresh.page import changes_folder
from pipeline.ops.refresh.stages import CHANGES
from pipeline.stages import STAGES
from pipeline.storage.provenance import read_provenance

_COLUMNS = ["arxiv_id", "change", "what", "version_before", "version", "passages_added", "passages_removed"]
# Papers that the UI lists; the page and the table have more.
_MOST = 20


def changes_shown(workspace: Workspace, month: str) -> Mapping[str, Any]:
    """The first papers that changed, what of language models is out of date, and where the page lies."""
    rows = workspace.root.iterate(tables.CHANGES, month, _COLUMNS)
    changed = [list(row.values()) for row in rows if row["change"] != "kept"]
    page = changes_folder(workspace.root) / f"{month}.html"
    shown = {"page": dg.MetadataValue.path(str(page)), "address": dg.MetadataValue.url(page.as_uri())}
    if changed:
        head = [name.replace("_", " ") for name in _COLUMNS]
        shown["papers"] = dg.MetadataValue.md(markdown_table(head, changed[:_MOST]))
    written = read_provenance(workspace.root.file(tables.CHANGES, month))
    stale = written.notes["out_of_date"] if written else {}
    if stale:
        table = markdown_table(("table", "rows"), stale.items())
        shown["no_longer_match_their_inputs"] = dg.MetadataValue.md(table)
    return shown


changes = stage_asset(
    CHANGES,
    group="operations",
    description="What changed since the last refresh: papers new, of another version, withdrawn; passages added, "
    "removed, kept; vectors taken over; and which tables of language models no longer match their inputs.",
    after=[stage.name for stage in STAGES],
    extras=changes_shown,
)
