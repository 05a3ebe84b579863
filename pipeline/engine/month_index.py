"""Indexes over all months of a table: SQLite files in the local cache, extended month by month.

An index is derived from its table. It is made again where it is absent, damaged or of another
version, and a month that changed replaces its rows.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from pipeline.engine.digests import month_digests
from pipeline.engine.locks import file_lock
from pipeline.engine.progress import StageAdvanced, publish
from pipeline.engine.stage import Workspace
from pipeline.errors import TransientFailure
from pipeline.storage.sqlite import transaction
from pipeline.tables import Table

_FOLDER, _LOCKS = "indexes", "locks"
_LOCK_SECONDS = 600.0
# Pages are read where they lie in the system's cache: an index of 2 million titles is 520 MB.
_MAPPED_BYTES = 2 << 30
_CACHE_KB = 64_000
_MONTHS = "create table months (month text primary key, digest text) without rowid"

Rows = Iterable[Mapping[str, Any]]


class MonthSource(Protocol):
    """What an index is made of."""

    def digests(self) -> Mapping[str, str]:
        """A value for each month, oldest first, that changes with the rows of the month."""

    def rows(self, month: str) -> Rows:
        """The rows of a month."""

    def is_gone(self, month: str) -> bool:
        """Whether a month that `digests` lacks is really gone."""


@dataclass(frozen=True, slots=True)
class TableSource:
    """All months of a table of the data root, or some columns of it."""

    workspace: Workspace
    table: Table
    columns: list[str]

    def digests(self) -> Mapping[str, str]:
        """The digest of the rows of each month."""
        return month_digests(self.workspace, self.table)

    def rows(self, month: str) -> Rows:
        """The rows of a month. Raises as `DataRoot.read` does."""
        return self.workspace.root.iterate(self.table, month, self.columns)

    def is_gone(self, month: str) -> bool:
        """Whether the month's file does not exist; a store is asked, not its cached listing."""
        return not self.workspace.root.exists(self.table, month)


@dataclass(frozen=True, slots=True)
class MonthIndex:
    """An index in one SQLite file.

    schema: statements that create its tables. version: raised when schema or rows change.
    replace_month: puts the rows of a month in place of what the index has of it. source: the rows
    of all months.
    """

    workspace: Workspace
    name: str
    version: int
    schema: str
    replace_month: Callable[[sqlite3.Connection, str, Rows], object]
    source: MonthSource

    @property
    def file(self) -> Path:
        return self._cache(_FOLDER) / f"{self.name}.sqlite"

    @contextlib.contextmanager
    def open(self) -> Iterator[sqlite3.Connection]:
        """A connection to the index, which has the rows of all months as they are now.

        Several processes and threads may open an index at once; where months changed, one extends
        it while the others wait. Each month is a transaction, so that a killed process leaves whole
        months. Raises as the source does, and TransientFailure where the file cannot be read or
        written; a damaged file is removed.
        """
        lock = self._cache(_LOCKS) / f"index-{self.name}.lock"
        with self._file_errors(), contextlib.ExitStack() as stack:
            connection = self._connect()
            if connection is not None:
                stack.callback(connection.close)
            if connection is None or _digests_in(connection) != self.source.digests():
                # The months are listed within the lock: by an older list, what another process has
                # just added would seem to be gone.
                with file_lock(lock, f"the index of {self.name}"):
                    connection = self._connect() or self._make()
                    stack.callback(connection.close)
                    self._extend(connection)
            yield connection

    def _cache(self, name: str) -> Path:
        """A folder of the local cache, or where that is read-only a temporary one of this process,
        so that the index is not made anew for every query.
        """
        cache = self.workspace.local / "cache"
        if _is_writable(cache / _FOLDER) and _is_writable(cache / _LOCKS):
            return self.workspace.cache(name)
        return _temporary_cache(cache)

    def _connect(self) -> sqlite3.Connection | None:
        """A connection to the file; None where it is absent, damaged or of another version."""
        if not self.file.exists():
            return None
        try:
            connection = connect(self.file)
            if connection.execute("pragma user_version").fetchone() == (self.version,):
                return connection
            connection.close()
        except sqlite3.DatabaseError as error:
            if not _means_damage(error):
                raise
        return None

    def _make(self) -> sqlite3.Connection:
        """A connection to a new file, which begins as a copy of the read-only one that it stands
        for, else without a month.
        """
        original = self.workspace.local / "cache" / _FOLDER / self.file.name
        if not self.file.exists() and original.exists():
            shutil.copyfile(original, self.file)
            copied = self._connect()
            if copied is not None:
                return copied
        self._remove()
        connection = connect(self.file)
        create_tables(connection, self.schema, self.version)
        return connection

    def _extend(self, connection: sqlite3.Connection) -> None:
        indexed = _digests_in(connection)
        digests = self.source.digests()
        new = [month for month, digest in digests.items() if indexed.get(month) != digest]
        for number, month in enumerate(new, start=1):
            if len(new) > 1:
                publish(StageAdvanced(f"index of {self.name}", month, number, len(new)))
            with transaction(connection):
                self.replace_month(connection, month, self.source.rows(month))
                connection.execute(
                    "insert or replace into months values (?, ?)", (month, digests[month])
                )
        for month in indexed.keys() - digests.keys():
            if self.source.is_gone(month):
                with transaction(connection):
                    self.replace_month(connection, month, ())
                    connection.execute("delete from months where month = ?", (month,))

    def _remove(self) -> None:
        for suffix in ("", "-journal"):
            self.file.with_name(self.file.name + suffix).unlink(missing_ok=True)

    @contextlib.contextmanager
    def _file_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            message = f"the index {self.file} cannot be used ({error})"
            if _means_damage(error):
                self._remove()
                message += ": it was removed, and the next run makes it again"
            else:
                message += (
                    ": free some disk space, or end the process that holds it; then run again"
                )
            raise TransientFailure(message) from error


def _digests_in(connection: sqlite3.Connection) -> dict[str, str]:
    """The months that an index has, each with the digest of its rows."""
    return dict(connection.execute("select month, digest from months"))


def _is_writable(folder: Path) -> bool:
    """Whether a folder can be written, or made."""
    while not folder.exists():
        folder = folder.parent
    return folder.is_dir() and os.access(folder, os.W_OK)


@lru_cache(maxsize=16)
def _temporary_cache(cache: Path) -> Path:
    """The folder in place of a read-only cache, one for each; removed when this process ends."""
    folder = tempfile.mkdtemp(prefix="citeloom-indexes-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _means_damage(error: sqlite3.Error) -> bool:
    """Whether an error says that the file is damaged.

    Subclasses of DatabaseError stand for a full disk or a busy file, which leave it whole.
    """
    return type(error) is sqlite3.DatabaseError


def connect(file: Path | str) -> sqlite3.Connection:
    """A connection in which every statement is a transaction, unless within `transaction`."""
    connection = sqlite3.connect(file, timeout=_LOCK_SECONDS, isolation_level=None)
    connection.execute(f"pragma mmap_size = {_MAPPED_BYTES}")
    connection.execute(f"pragma cache_size = -{_CACHE_KB}")
    connection.execute("pragma synchronous = normal")
    connection.execute("pragma temp_store = memory")
    return connection


def create_tables(connection: sqlite3.Connection, schema: str, version: int) -> None:
    """Create the tables of an index in an empty file."""
    connection.executescript(f"begin; {_MONTHS}; {schema}; pragma user_version = {version}; commit")
