"""Ledger of the pages requested from arXiv's site, so that no page is requested twice."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pipeline.errors import PermanentFailure

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
        with self._connection() as store:
            store.execute(_SCHEMA)

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

    @contextlib.contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        try:
            with contextlib.closing(sqlite3.connect(self._file, timeout=60.0)) as store, store:
                yield store
        except sqlite3.Error as error:
            raise PermanentFailure(
                f"the ledger of fetched pages, {self._file}, cannot be read or written ({error}): make room there, or "
                "move the file away and run again"
            ) from error
