"""What arXiv's site answered of each paper, kept so that nothing is asked twice."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pipeline.errors import PermanentFailure

FETCHED = "fetched"
# Another try may go well: the server was down, or the page came in part.
PASSING = frozenset({"cut", "unanswered"})

_SCHEMA = """
create table if not exists asked (
    arxiv_id text primary key, reason text not null, detail text not null, bytes integer not null, sha256 text not null,
    asked_at text not null
) without rowid
"""


@dataclass(frozen=True, slots=True)
class Asked:
    """What came of a paper: `fetched`, or the reason why there is no page; `detail` is its address, or why.

    bytes and sha256 are those of the page; 0 and empty where there is none. asked_at: ISO 8601, UTC.
    """

    arxiv_id: str
    reason: str
    detail: str
    bytes: int = 0
    sha256: str = ""
    asked_at: str = ""


class PageLedger:
    """One SQLite file in a folder; each answer is kept in one transaction, so a kill loses none that was kept.

    Raises PermanentFailure where the file is no such store, or cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / "asked.sqlite"
        with self._opened() as store:
            store.execute(_SCHEMA)

    @property
    def lock(self) -> Path:
        """The file that one who fetches holds."""
        return self._file.with_suffix(".lock")

    def find(self, ids: Collection[str]) -> dict[str, Asked]:
        """What is kept of those papers."""
        with self._opened() as store:
            query = "select * from asked where arxiv_id = ?"
            rows = [row for name in ids for row in store.execute(query, (name,))]
        return {row[0]: Asked(*row) for row in rows}

    def keep(self, asked: Asked) -> None:
        """Keep what came of a paper just now, in place of what came of it before."""
        at = datetime.now(UTC).isoformat(timespec="seconds")
        row = (asked.arxiv_id, asked.reason, asked.detail, asked.bytes, asked.sha256, at)
        with self._opened() as store:
            store.execute("insert or replace into asked values (?, ?, ?, ?, ?, ?)", row)

    @contextlib.contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        try:
            with contextlib.closing(sqlite3.connect(self._file, timeout=60.0)) as store, store:
                yield store
        except sqlite3.Error as error:
            raise PermanentFailure(
                f"what arXiv answered on pages, {self._file}, cannot be read or written ({error}): make room there, or "
                "move the file away and run again"
            ) from error
