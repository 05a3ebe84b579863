"""What was harvested over OAI-PMH, and how far: one SQLite file below the data root's cache.

A page and the token that leads on from it are kept in one transaction, so a kill loses one request at most.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from pipeline.arxiv.identifiers import month_of
from pipeline.errors import PermanentFailure
from pipeline.metadata.record import Record

# The store's folder below the data root's cache.
STORE = "oai"

# In one transaction, so that a kill leaves all of the tables or none.
_SCHEMA = """
begin immediate;
create table if not exists records (
    arxiv_id text primary key, month text not null, datestamp text not null, deleted integer not null,
    record text, digest text not null
) without rowid;
create index if not exists by_month on records (month, arxiv_id, digest);
create table if not exists broken (arxiv_id text primary key, month text not null, reason text not null) without rowid;
create table if not exists state (name text primary key, value text not null) without rowid;
commit;
"""
_BY_MONTH = "select arxiv_id, {} from {} where month = ? order by arxiv_id"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Change:
    """A paper as it is since the day `datestamp`, or None where arXiv deleted it on that day."""

    arxiv_id: str
    datestamp: str
    record: Record | None


@dataclass(frozen=True, slots=True)
class Page:
    """One answer. `token` leads to the next one until `expires` (ISO 8601, or None); None where this is the last.

    `broken` has, by identifier, why a record of it cannot be read; `nameless` counts those that tell no identifier.
    `total` is how many records the whole list has, where the server says.
    """

    changes: tuple[Change, ...]
    broken: Mapping[str, str]
    answered_at: str
    token: str | None = None
    expires: str | None = None
    total: int | None = None
    nameless: int = 0


@dataclass(frozen=True, slots=True)
class Harvested:
    """A paper as OAI-PMH last told of it. `record` is None where it was deleted before it was ever told of."""

    datestamp: str
    deleted: bool
    record: Record | None


@dataclass(slots=True)
class News:
    """What pages changed in the store: papers by kind of news, and the months that changed papers belong to."""

    counts: Counter[str] = field(default_factory=Counter)
    months: set[str] = field(default_factory=set)


class HarvestStore:
    """The store in a folder. Reading where nothing was harvested yet finds nothing, and makes no file.

    Every method raises PermanentFailure where the file is no such store or cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / "harvest.sqlite"

    @property
    def lock(self) -> Path:
        """The file that one harvest at a time holds."""
        return self._file.with_suffix(".lock")

    def find(self, ids: Collection[str]) -> dict[str, Harvested]:
        """What was harvested of those identifiers."""
        columns = "datestamp, deleted, record"
        return {
            name: Harvested(datestamp, bool(deleted), Record.from_row(json.loads(record)) if record else None)
            for name, datestamp, deleted, record in self._of_months(_BY_MONTH.format(columns, "records"), ids)
        }

    def identifiers(self, month: str) -> list[str]:
        """The papers of a month that anything was harvested of, sorted."""
        query = "select arxiv_id from records where month = ? order by arxiv_id"
        return self._ask(lambda store: [name for (name,) in store.execute(query, (month,))], [])

    def broken(self, ids: Collection[str]) -> dict[str, str]:
        """Those identifiers whose newest harvested record could not be read, and why."""
        return dict(self._of_months(_BY_MONTH.format("reason", "broken"), ids))

    def digest(self, ids: Collection[str]) -> str | None:
        """SHA-256 over what was harvested of those identifiers, whenever it was; None where that is nothing.

        A record that could not be read counts: the ledger of its month has to name it.
        """
        rows = self._of_months(_BY_MONTH.format("digest", "records"), ids)
        rows += self._of_months(_BY_MONTH.format("reason", "broken"), ids)
        return hashlib.sha256(json.dumps(rows).encode()).hexdigest() if rows else None

    def state(self) -> dict[str, str]:
        """How far the harvest is, as `keep` and `note` left it."""
        return self._ask(lambda store: dict(store.execute("select name, value from state").fetchall()), {})

    def keep(self, page: Page, state: Mapping[str, str]) -> News:
        """Keep one page, and with it how far the harvest is."""
        news = News()
        with self._writing() as store:
            for change in page.changes:
                _keep(store, change, page.answered_at, news)
            for name, reason in page.broken.items():
                _keep_broken(store, name, reason, news)
            news.counts["broken"] += page.nameless
            _set(store, state)
        return news

    def note(self, state: Mapping[str, str]) -> None:
        """Keep how far the harvest is; what an empty value names is forgotten."""
        with self._writing() as store:
            _set(store, state)

    def _of_months(self, query: str, ids: Collection[str]) -> list[tuple[Any, ...]]:
        chosen = frozenset(ids)
        months = sorted({_month(name) for name in chosen})

        def rows(store: sqlite3.Connection) -> list[tuple[Any, ...]]:
            return [row for month in months for row in store.execute(query, (month,)) if row[0] in chosen]

        return self._ask(rows, [])

    def _ask(self, question: Callable[[sqlite3.Connection], T], nothing: T) -> T:
        if not self._file.exists():
            return nothing
        with self._opened() as store:
            # A file without tables is what a kill leaves between making the file and its tables.
            made = store.execute("select 1 from sqlite_master where name = 'records'").fetchone()
            return question(store) if made else nothing

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._opened() as store:
            store.executescript(_SCHEMA)
            with store:
                yield store

    @contextlib.contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        try:
            with contextlib.closing(sqlite3.connect(self._file, timeout=60.0)) as store:
                yield store
        except sqlite3.Error as error:
            raise PermanentFailure(
                f"what was harvested from arXiv, {self._file}, cannot be read or written ({error}): make room there, "
                "or move the file away and harvest anew"
            ) from error


def _month(arxiv_id: str) -> str:
    """The month under which an identifier is kept; "" for what is no identifier of arXiv's."""
    return month_of(arxiv_id) or ""


def _set(store: sqlite3.Connection, state: Mapping[str, str]) -> None:
    store.executemany("insert or replace into state values (?, ?)", state.items())
    store.execute("delete from state where value = ''")


def _keep(store: sqlite3.Connection, change: Change, at: str, news: News) -> None:
    """Keep one change, unless a newer one is there or it says nothing new."""
    query = "select datestamp, deleted, record, digest from records where arxiv_id = ?"
    known = store.execute(query, (change.arxiv_id,)).fetchone()
    if known and known[0] > change.datestamp:
        news.counts["unchanged"] += 1
        return
    before = Record.from_row(json.loads(known[2])) if known and known[2] else None
    digest = _digest(change.record)
    store.execute("delete from broken where arxiv_id = ?", (change.arxiv_id,))
    if known and digest == known[3]:
        news.counts["unchanged"] += 1
        store.execute("update records set datestamp = ? where arxiv_id = ?", (change.datestamp, change.arxiv_id))
        return
    record = replace(change.record, fetched_at=at) if change.record else before
    content = json.dumps(record.as_row(), sort_keys=True) if record else None
    month = _month(change.arxiv_id)
    row = (change.arxiv_id, month, change.datestamp, change.record is None, content, digest)
    store.execute("insert or replace into records values (?, ?, ?, ?, ?, ?)", row)
    news.months.update(filter(None, [month]))
    news.counts[_kind(change.record, before, bool(known))] += 1


def _keep_broken(store: sqlite3.Connection, name: str, reason: str, news: News) -> None:
    """Keep that a record cannot be read; only what was not known makes its month due."""
    news.counts["broken"] += 1
    known = store.execute("select reason from broken where arxiv_id = ?", (name,)).fetchone()
    if known != (reason,):
        month = _month(name)
        store.execute("insert or replace into broken values (?, ?, ?)", (name, month, reason))
        news.months.update(filter(None, [month]))


def _kind(record: Record | None, before: Record | None, known: bool) -> str:
    if record is None:
        return "deleted"
    if record.status == "withdrawn" and (before is None or before.status != "withdrawn"):
        return "withdrawn"
    return "changed" if known else "new"


def _digest(record: Record | None) -> str:
    """Of what is said, not of when it was said: a record that comes again makes no month due."""
    content = json.dumps(record.as_row(), sort_keys=True) if record else "deleted"
    return hashlib.blake2b(content.encode(), digest_size=16).hexdigest()
