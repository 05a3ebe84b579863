"""Records harvested over OAI-PMH, and the harvest's progress, in one SQLite file.

A page and the token of the next are stored in one transaction: a kill loses one request at most.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from pipeline.arxiv.record import Record
from pipeline.identity.identifiers import month_of
from pipeline.storage.sqlite import open_store
from pipeline.storage.store import file_version
from pipeline.text import text_digest

# The store's folder below the data root's cache.
STORE = "oai"

# In one transaction, so that a kill leaves all of the tables or none.
_SCHEMA = """
begin immediate;
create table if not exists records (
    arxiv_id text primary key, month text not null, datestamp text not null, deleted integer not
    null,
    record text, digest text not null
) without rowid;
create index if not exists by_month on records (month, arxiv_id, digest);
create table if not exists broken (arxiv_id text primary key, month text not null, reason text not
null) without rowid;
create table if not exists state (name text primary key, value text not null) without rowid;
commit;
"""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Change:
    """A paper as it is since the day `datestamp`; `record` is None where arXiv deleted it."""

    arxiv_id: str
    datestamp: str
    record: Record | None


@dataclass(frozen=True, slots=True)
class HarvestPage:
    """One answer of OAI-PMH.

    token: leads to the next page until `expires` (ISO 8601, or None); None on the last page.
    broken: by identifier, why its record cannot be read; `nameless` counts those without an
    identifier. total: how many records the whole list has, where the server says so.
    """

    changes: tuple[Change, ...]
    broken: Mapping[str, str]
    answered_at: str
    token: str | None = None
    expires: str | None = None
    total: int | None = None
    nameless: int = 0


@dataclass(frozen=True, slots=True)
class HarvestedPaper:
    """A paper as last harvested; `record` is None if it was deleted before any came."""

    datestamp: str
    deleted: bool
    record: Record | None


@dataclass(slots=True)
class News:
    """Changes that pages made to the store: papers by kind of change, and their months."""

    counts: Counter[str] = field(default_factory=Counter)
    months: set[str] = field(default_factory=set)


class HarvestStore:
    """The store in a folder; reading it before the first harvest finds nothing and makes no file.

    Every method raises PermanentFailure where the file is damaged or cannot be written, and
    TransientFailure where another process keeps it locked.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / "harvest.sqlite"

    @property
    def lock(self) -> Path:
        """The lock file that a harvest holds."""
        return self._file.with_suffix(".lock")

    @property
    def version(self) -> str:
        """Equal while the file is the same; empty before the first harvest."""
        return str(file_version(self._file)) if self._file.exists() else ""

    def find(self, ids: Collection[str]) -> dict[str, HarvestedPaper]:
        """Those of the papers that were harvested."""
        papers = {}
        rows = self._select("datestamp, deleted, record", "records", ids)
        for name, datestamp, deleted, content in rows:
            record = Record.from_row(json.loads(content)) if content else None
            papers[name] = HarvestedPaper(datestamp, bool(deleted), record)
        return papers

    def identifiers(self, month: str) -> list[str]:
        """The harvested papers of a month, sorted."""
        query = "select arxiv_id from records where month = ? order by arxiv_id"
        return self._query(lambda store: [name for (name,) in store.execute(query, (month,))], [])

    def broken(self, ids: Collection[str]) -> dict[str, str]:
        """Those of the papers whose newest record cannot be read, with the reason."""
        return dict(self._select("reason", "broken", ids))

    def digest(self, ids: Collection[str]) -> str | None:
        """SHA-256 of those papers' records, without the time of harvest; None without any.

        A record that cannot be read counts, since the ledger of its month names it.
        """
        rows = [*self._select("digest", "records", ids), *self._select("reason", "broken", ids)]
        return text_digest(json.dumps(rows)) if rows else None

    def state(self) -> dict[str, str]:
        """The progress of the harvest, as `add` and `set_state` stored it."""
        return self._query(
            lambda store: dict(store.execute("select name, value from state").fetchall()), {}
        )

    def add(self, page: HarvestPage, state: Mapping[str, str]) -> News:
        """Store one page and how far the harvest is with it."""
        news = News()
        with self._transaction() as store:
            for change in page.changes:
                _add_change(store, change, page.answered_at, news)
            for name, reason in page.broken.items():
                _add_broken(store, name, reason, news)
            news.counts["broken"] += page.nameless
            _set_state(store, state)
        return news

    def set_state(self, state: Mapping[str, str]) -> None:
        """Store how far the harvest is; an empty value removes its name."""
        with self._transaction() as store:
            _set_state(store, state)

    def _select(self, columns: str, table: str, ids: Collection[str]) -> list[tuple[Any, ...]]:
        """Rows of those papers, sorted; read by month, since a stage asks for all papers of one."""
        names = frozenset(ids)
        months = sorted({_month(name) for name in names})
        query = f"select arxiv_id, {columns} from {table} where month = ? order by arxiv_id"  # noqa: S608

        def read(store: sqlite3.Connection) -> list[tuple[Any, ...]]:
            rows = itertools.chain.from_iterable(store.execute(query, (month,)) for month in months)
            return [row for row in rows if row[0] in names]

        return self._query(read, [])

    def _query(self, read: Callable[[sqlite3.Connection], T], nothing: T) -> T:
        if not self._file.exists():
            return nothing
        with self._open() as store:
            # A kill between making the file and its tables leaves a file without tables.
            has_tables = store.execute(
                "select 1 from sqlite_master where name = 'records'"
            ).fetchone()
            return read(store) if has_tables else nothing

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._open() as store:
            store.executescript(_SCHEMA)
            with store:
                yield store

    def _open(self) -> contextlib.AbstractContextManager[sqlite3.Connection]:
        way_out = "move the file away and harvest again"
        return open_store(self._file, "the records harvested from arXiv", way_out)


def _month(arxiv_id: str) -> str:
    """The month under which an identifier is stored; "" for one that is not arXiv's."""
    return month_of(arxiv_id) or ""


def _set_state(store: sqlite3.Connection, state: Mapping[str, str]) -> None:
    store.executemany("insert or replace into state values (?, ?)", state.items())
    store.execute("delete from state where value = ''")


def _add_change(store: sqlite3.Connection, change: Change, now: str, news: News) -> None:
    """Store a change, unless the stored one is newer or says the same."""
    query = "select datestamp, record, digest from records where arxiv_id = ?"
    stored = store.execute(query, (change.arxiv_id,)).fetchone()
    if stored and stored[0] > change.datestamp:
        news.counts["unchanged"] += 1
        return
    digest = _digest(change.record)
    store.execute("delete from broken where arxiv_id = ?", (change.arxiv_id,))
    if stored and digest == stored[2]:
        news.counts["unchanged"] += 1
        store.execute(
            "update records set datestamp = ? where arxiv_id = ?",
            (change.datestamp, change.arxiv_id),
        )
        return
    before = Record.from_row(json.loads(stored[1])) if stored and stored[1] else None
    record = replace(change.record, fetched_at=now) if change.record else before
    content = json.dumps(record.as_row(), sort_keys=True) if record else None
    month = _month(change.arxiv_id)
    row = (change.arxiv_id, month, change.datestamp, change.record is None, content, digest)
    store.execute("insert or replace into records values (?, ?, ?, ?, ?, ?)", row)
    news.months.update(filter(None, [month]))
    if change.record is None:
        kind = "deleted"
    elif change.record.status == "withdrawn" and (before is None or before.status != "withdrawn"):
        kind = "withdrawn"
    else:
        kind = "changed" if stored else "new"
    news.counts[kind] += 1


def _add_broken(store: sqlite3.Connection, name: str, reason: str, news: News) -> None:
    """Store that a record cannot be read; its month is out of date only where that is new."""
    news.counts["broken"] += 1
    stored = store.execute("select reason from broken where arxiv_id = ?", (name,)).fetchone()
    if stored != (reason,):
        month = _month(name)
        store.execute("insert or replace into broken values (?, ?, ?)", (name, month, reason))
        news.months.update(filter(None, [month]))


def _digest(record: Record | None) -> str:
    """Digest of the record without the time of harvest, so that a repeat makes no month due."""
    content = json.dumps(record.as_row(), sort_keys=True) if record else "deleted"
    return hashlib.blake2b(content.encode(), digest_size=16).hexdigest()
