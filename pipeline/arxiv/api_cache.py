"""Cache of the answers of arXiv's API, so that no identifier is requested twice."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path

from pipeline.arxiv.record import Record
from pipeline.storage.sqlite import open_store

_SCHEMA = "create table if not exists records (arxiv_id text primary key, record text not null) without rowid"


class ApiCache:
    """One SQLite file in a folder, with a record for each identifier; `absent` where arXiv has no such paper.

    Delete the folder to request everything again. Raises PermanentFailure where the file is damaged or cannot be
    written.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / "answers.sqlite"

    def find(self, ids: Iterable[str]) -> dict[str, Record]:
        """The cached records of those identifiers."""
        if not self._file.exists():
            return {}
        query = "select record from records where arxiv_id = ?"
        with self._open() as store:
            rows = [row for name in ids for row in store.execute(query, (name,))]
        records = [Record.from_row(json.loads(record)) for (record,) in rows]
        return {record.arxiv_id: record for record in records}

    def add(self, records: Iterable[Record]) -> None:
        """Add what an answer says, all or nothing."""
        rows = [(record.arxiv_id, json.dumps(record.as_row(), sort_keys=True)) for record in records]
        with self._open() as store:
            store.executemany("insert or replace into records values (?, ?)", rows)

    def _open(self) -> AbstractContextManager[sqlite3.Connection]:
        way_out = "free some disk space, or move the file away and run again"
        return open_store(self._file, "the cached answers of arXiv", way_out, _SCHEMA)
