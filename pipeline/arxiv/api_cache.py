"""Cache of the answers of arXiv's API, so that no identifier is requested twice."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path

from pipeline.arxiv.record import Record
from pipeline.errors import PermanentFailure

_SCHEMA = "create table if not exists records (arxiv_id text primary key, record text not null) without rowid"


class ApiCache:
    """One SQLite file in a folder, with a record for each identifier; `absent` where arXiv has no such paper.

    Delete the folder to request everything again. Raises PermanentFailure where the file is damaged or cannot be
    written.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / "answers.sqlite"
        self._connection = sqlite3.connect(self._file, timeout=60.0)
        try:
            with self._named_errors(), self._connection:
                self._connection.execute(_SCHEMA)
        except PermanentFailure:
            self.close()
            raise

    @classmethod
    def find_in(cls, folder: Path, ids: Iterable[str]) -> dict[str, Record]:
        """What `find` returns for the cache in a folder; nothing where there is none yet."""
        if not (folder / "answers.sqlite").exists():
            return {}
        with contextlib.closing(cls(folder)) as cache:
            return cache.find(ids)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def find(self, ids: Iterable[str]) -> dict[str, Record]:
        """The cached records of those identifiers."""
        query = "select record from records where arxiv_id = ?"
        with self._named_errors():
            rows = [row for name in ids for row in self._connection.execute(query, (name,))]
        records = [Record.from_row(json.loads(record)) for (record,) in rows]
        return {record.arxiv_id: record for record in records}

    def add(self, records: Iterable[Record]) -> None:
        """Add what an answer says, all or nothing."""
        rows = [(record.arxiv_id, json.dumps(record.as_row(), sort_keys=True)) for record in records]
        with self._named_errors(), self._connection:
            self._connection.executemany("insert or replace into records values (?, ?)", rows)

    @contextlib.contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise PermanentFailure(
                f"the cached answers of arXiv, {self._file}, cannot be read or written ({error}): free some disk "
                "space, or move the file away and run again"
            ) from error
