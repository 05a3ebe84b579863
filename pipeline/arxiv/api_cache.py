"""Cache of the answers of arXiv's API, so that no identifier is requested twice."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pipeline.arxiv.record import Record, absent
from pipeline.errors import PermanentFailure

_SCHEMA = """
create table if not exists answers (
    arxiv_id text primary key, record text, fetched_at text not null, misses integer not null
) without rowid
"""
_ADD = """
insert into answers values (?, ?, ?, ?) on conflict (arxiv_id) do update set
    record = excluded.record, fetched_at = excluded.fetched_at, misses = misses + excluded.misses
"""
# One answer may lack a paper that the next one holds; after the second miss the paper counts as absent.
MISSES_OF_ABSENT = 2


class ApiCache:
    """One SQLite file in a folder: for each identifier its record, or how often an answer lacked it.

    An answer is added in one transaction. Delete the folder to request everything again. Raises PermanentFailure where
    the file is damaged or cannot be written.
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
        """The cached records of those identifiers; `absent` for those that two answers lacked."""
        records = {}
        for arxiv_id, record, fetched_at, misses in self._rows(ids):
            if record:
                records[arxiv_id] = Record.from_row(json.loads(record))
            elif misses >= MISSES_OF_ABSENT:
                records[arxiv_id] = absent(arxiv_id, "api", fetched_at)
        return records

    def unknown(self, ids: Collection[str]) -> list[str]:
        """Those identifiers that were never requested, sorted."""
        return sorted(set(ids) - {row[0] for row in self._rows(ids)})

    def missing_once(self, ids: Collection[str]) -> list[str]:
        """Those identifiers that one answer lacked, and no second one yet, sorted."""
        rows = self._rows(ids)
        return sorted(row[0] for row in rows if row[1] is None and row[3] < MISSES_OF_ABSENT)

    def add(self, ids: Iterable[str], records: Mapping[str, Record], now: str, *, misses: int = 1) -> None:
        """Add the answer to a request for `ids`: its records, and `misses` for each identifier that it lacks."""
        with self._named_errors(), self._connection:
            for arxiv_id in ids:
                record = records.get(arxiv_id)
                content = json.dumps(record.as_row(), sort_keys=True) if record else None
                self._connection.execute(_ADD, (arxiv_id, content, now, 0 if record else misses))

    def _rows(self, ids: Iterable[str]) -> Iterator[tuple[Any, ...]]:
        query = "select arxiv_id, record, fetched_at, misses from answers where arxiv_id = ?"
        with self._named_errors(), contextlib.closing(self._connection.cursor()) as cursor:
            for arxiv_id in ids:
                yield from cursor.execute(query, (arxiv_id,)).fetchall()

    @contextlib.contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise PermanentFailure(
                f"the cached answers of arXiv, {self._file}, cannot be read or written ({error}): free some disk "
                "space, or move the file away and run again"
            ) from error
