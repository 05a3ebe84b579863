"""Digests of tables of other months, for a stage's `inputs`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from pipeline.engine.stage import Workspace
from pipeline.storage.provenance import read_provenance
from pipeline.tables import Table


def digest_of(workspace: Workspace, table: Table, months: Iterable[str]) -> str:
    """One digest over the rows of some months of a table; a missing month counts as such."""
    lines = [_month_digest(workspace, table, month) for month in months]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def digests_by_month(workspace: Workspace, table: Table, months: Iterable[str]) -> dict[str, str]:
    """The digest of the rows of each month of a table that exists, by `table month`."""
    provenances = {
        month: read_provenance(workspace.root.file(table, month)) for month in sorted(months)
    }
    return {
        f"{table.name} {month}": provenance.rows_sha256
        for month, provenance in provenances.items()
        if provenance
    }


def _month_digest(workspace: Workspace, table: Table, month: str) -> str:
    provenance = read_provenance(workspace.root.file(table, month))
    return f"{month} {provenance.rows_sha256 if provenance else 'absent'}"
