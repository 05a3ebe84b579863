"""Digests of tables of other months, for a stage's `inputs`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache

from pipeline.engine.stage import Workspace
from pipeline.storage.provenance import read_provenance
from pipeline.storage.store import DataPath, file_version
from pipeline.tables import Table


def digest_of(workspace: Workspace, table: Table, months: Iterable[str]) -> str:
    """One digest over the rows of some months of a table; a missing month counts as such."""
    return hashlib.sha256(
        "\n".join(_rows(workspace, table, month) for month in months).encode()
    ).hexdigest()


def digests_by_month(workspace: Workspace, table: Table, months: Iterable[str]) -> dict[str, str]:
    """A digest over the rows of each of these months of a table that is there, by `table month`."""
    provenances = {
        month: read_provenance(workspace.root.file(table, month)) for month in sorted(months)
    }
    return {
        f"{table.name} {month}": provenance.rows_sha256
        for month, provenance in provenances.items()
        if provenance
    }


def _rows(workspace: Workspace, table: Table, month: str) -> str:
    file = workspace.root.file(table, month)
    try:
        return f"{month} {_rows_sha256(file, *file_version(file))}"
    except FileNotFoundError:
        return f"{month} absent"


# Each of 400 months asks for all before it: that would be 160,000 files to open whenever a state is
# asked for.
@lru_cache(maxsize=1 << 12)
def _rows_sha256(file: DataPath, *identity: object) -> str:
    """Digest of the rows of a file. identity: differs after the file was rewritten."""
    provenance = read_provenance(file)
    return provenance.rows_sha256 if provenance else "absent"
