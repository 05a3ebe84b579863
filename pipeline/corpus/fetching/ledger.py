"""Ledger of the pages requested from arXiv's site, so that no page is requested twice."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pipeline.storage.sqlite import open_store

FETCHED = "fetched"
# A later request may succeed: the server was down, or the page was incomplete.
RETRYABLE = frozenset({"cut", "unanswered"})

# The table, its columns and the file keep the names under which ledgers exist on disks.
_SCHEMA = """
create table if not exists asked (
    arxiv_id text primary key, reason text not null, detail text not null, bytes integer not null, sha256 text not null,
    asked_at text not null
) without rowid
"""


@dataclass(frozen=True, slots=True)
class PageRecord:
    """Outcome of the last request for a paper's page.

    reason: `fetched`, or why there is no page. detail: the page's address, or the fault. bytes and sha256: of the page;
    0 and empty where there is none. asked_at: ISO 8601, UTC.
    """

    arxiv_id: str
    reason: str
    detail: str
    bytes: int = 0
    sha256: str = ""
    asked_at: str = ""


class PageLedger:
    """An SQLite file in a folder; each record is one transaction, so that a kill loses none.

    Raises PermanentFailure where the file is no ledger, or cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / "asked.sqlite"

    @property
    def lock(self) -> Path:
        """The lock file that a running fetch holds."""
        return self._file.with_suffix(".lock")

    def find(self, ids: Collection[str]) -> dict[str, PageRecord]:
        """The records of some papers, by identifier."""
        with self._connection() as store:
            query = "select * from asked where arxiv_id = ?"
            rows = [row for name in ids for row in store.execute(query, (name,))]
        return {row[0]: PageRecord(*row) for row in rows}

    def save(self, record: PageRecord) -> None:
        """Save the outcome of a request with the present time, in place of the paper's earlier record."""
        at = datetime.now(UTC).isoformat(timespec="seconds")
        row = (record.arxiv_id, record.reason, record.detail, record.bytes, record.sha256, at)
        with self._connection() as store:
            store.execute("insert or replace into asked values (?, ?, ?, ?, ?, ?)", row)

    def _connection(self) -> AbstractContextManager[sqlite3.Connection]:
        way_out = "make room there, or move the file away and run again"
        return open_store(self._file, "the ledger of fetched pages", way_out, _SCHEMA)
