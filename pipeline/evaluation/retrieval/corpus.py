"""The passages of the months up to one, as what a query may find. Not here: which of them are searched (`pool`)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

from pipeline import tables
from pipeline.identifiers import month_of
from pipeline.stages import Workspace
from pipeline.tables import Table, read_provenance


def months_until(workspace: Workspace, month: str) -> list[str]:
    """Months that have passages, up to and with this one, oldest first: nobody cites what comes later."""
    return [other for other in workspace.root.months(tables.PASSAGES) if other <= month]


def months_of(workspace: Workspace, month: str, papers: Iterable[str]) -> list[str]:
    """Those of `months_until` that the identifiers of these papers name."""
    named = {month_of(paper) for paper in papers}
    return [other for other in months_until(workspace, month) if other in named]


def passages_by_paper(workspace: Workspace, month: str) -> dict[str, int]:
    """How many passages each paper of a month has; a paper without one cannot be found and is not named."""
    column = workspace.root.read(tables.PASSAGES, month, ["arxiv_id"])["arxiv_id"]
    return {pair["values"]: pair["counts"] for pair in column.value_counts().to_pylist()}


def digest_of(workspace: Workspace, table: Table, months: Iterable[str]) -> str:
    """One digest over the rows of some months of a table, for a stage's `inputs`; a month that is not there counts."""
    return hashlib.sha256("\n".join(_rows(workspace, table, month) for month in months).encode()).hexdigest()


def _rows(workspace: Workspace, table: Table, month: str) -> str:
    file = workspace.root.file(table, month)
    if not file.exists():
        return f"{month} absent"
    stat = file.stat()
    return f"{month} {_rows_sha256(file, stat.st_mtime_ns, stat.st_ino, stat.st_size)}"


# Each of 400 months asks for all before it: that would be 160,000 files to open whenever a state is asked for.
@lru_cache(maxsize=1 << 12)
def _rows_sha256(file: Path, *identity: int) -> str:
    """Digest of the rows of a file. identity: what differs after it was written anew."""
    written = read_provenance(file)
    return written.rows_sha256 if written else "absent"


def earlier_digests(workspace: Workspace, month: str, months: Iterable[str], *read: Table) -> Mapping[str, str]:
    """`digest_of` the months before this one, by table; this month's rows are a stage's `upstream` already."""
    earlier = [other for other in months if other < month]
    return {f"{table.name} before": digest_of(workspace, table, earlier) for table in read}
