"""What arXiv's API has answered, kept so that nothing is asked twice."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pipeline.errors import PermanentFailure
from pipeline.metadata.record import Record, absent

_SCHEMA = """
create table if not exists answers (
    arxiv_id text primary key, record text, fetched_at text not null, misses integer not null
) without rowid
"""
_KEEP = """
insert into answers values (?, ?, ?, ?) on conflict (arxiv_id) do update set
    record = excluded.record, fetched_at = excluded.fetched_at, misses = misses + excluded.misses
"""
# One answer may leave out a paper that the next one holds; after the second miss the paper counts as absent.
MISSES_OF_ABSENT = 2


class Answers:
    """Every answer in one SQLite file of a folder: a record, or how often an identifier was missing.

    An answer is kept in one transaction, so a kill loses none that was kept. Delete the folder to ask anew. Raises
    PermanentFailure where the file is no such store, or cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / "answers.sqlite"
        self._connection = sqlite3.connect(self._file, timeout=60.0)
        try:
            with self._named(), self._connection:
                self._connection.execute(_SCHEMA)
        except PermanentFailure:
            self.close()
            raise

    @classmethod
    def kept_in(cls, folder: Path, ids: Iterable[str]) -> dict[str, Record]:
        """What `known` says of the store in a folder; nothing where there is none yet."""
        if not (folder / "answers.sqlite").exists():
            return {}
        with contextlib.closing(cls(folder)) as answers:
            return answers.known(ids)

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def known(self, ids: Iterable[str]) -> dict[str, Record]:
        """The records of those identifiers that are answered for good; `absent` those that were missing twice."""
        found = {}
        for arxiv_id, record, fetched_at, misses in self._rows(ids):
            if record:
                found[arxiv_id] = Record.from_row(json.loads(record))
            elif misses >= MISSES_OF_ABSENT:
                found[arxiv_id] = absent(arxiv_id, "api", fetched_at)
        return found

    def never_asked(self, ids: Collection[str]) -> list[str]:
        """Those identifiers that no answer concerns, sorted."""
        return sorted(set(ids) - {row[0] for row in self._rows(ids)})

    def missing_once(self, ids: Collection[str]) -> list[str]:
        """Those identifiers that an answer has left out, and no second one yet, sorted."""
        rows = self._rows(ids)
        return sorted(row[0] for row in rows if row[1] is None and row[3] < MISSES_OF_ABSENT)

    def keep(self, asked: Iterable[str], records: Mapping[str, Record], at: str, *, misses: int = 1) -> None:
        """Keep one answer: what it holds of the identifiers asked for, and `misses` for each that it leaves out."""
        with self._named(), self._connection:
            for arxiv_id in asked:
                record = records.get(arxiv_id)
                content = json.dumps(record.as_row(), sort_keys=True) if record else None
                self._connection.execute(_KEEP, (arxiv_id, content, at, 0 if record else misses))

    def _rows(self, ids: Iterable[str]) -> Iterator[tuple[Any, ...]]:
        query = "select arxiv_id, record, fetched_at, misses from answers where arxiv_id = ?"
        with self._named(), contextlib.closing(self._connection.cursor()) as cursor:
            for arxiv_id in ids:
                yield from cursor.execute(query, (arxiv_id,)).fetchall()

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise PermanentFailure(
                f"the kept answers of arXiv, {self._file}, cannot be read or written ({error}): make room there, or "
                "move the file away and run again"
            ) from error
