"""A cache for a block that reads many facts of a data root and changes few: `read_cache`.

Within the block each file is looked at once, and each folder of a store is listed once. Facts that
were read from a file are kept on this machine's disk with the file's version, so that the next
process need not read it: 424 months have 9,000 footers of 0.2 ms.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

from pipeline.errors import PermanentFailure, TransientFailure
from pipeline.storage.sqlite import open_store

T = TypeVar("T")

_ABSENT = object()
# A month's status looks at 50 files. The values of all 9,000 files of 424 months took 35 MB.
_MOST_SOURCES = 1 << 10

_SCHEMA = (
    "create table if not exists facts"
    " (name text primary key, version text not null, fact text not null) without rowid"
)
_FIND = "select fact from facts where name = ? and version = ?"


class FactStore:
    """Texts by name, each with the version of what it was read from, in one SQLite file.

    Only a cache: a file that cannot be read is made again, one that cannot be written is left.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._stored = self._open()
        self._new: dict[str, tuple[str, str]] = {}

    def find(self, name: str, version: str) -> str | None:
        """The fact of this name; None where there is none of this version."""
        if name in self._new:
            version_added, fact = self._new[name]
            return fact if version_added == version else None
        if self._stored is None:
            return None
        try:
            row = self._stored.execute(_FIND, (name, version)).fetchone()
        except sqlite3.Error as error:
            self._give_up(error)
            return None
        return None if row is None else str(row[0])

    def add(self, name: str, version: str, fact: str) -> None:
        """Keep a fact, in place of that of another version."""
        self._new[name] = (version, fact)

    def close(self) -> None:
        """Write the facts that were added, and close the file."""
        if self._stored is not None:
            self._stored.close()
        if not self._new:
            return
        rows = [(name, version, fact) for name, (version, fact) in self._new.items()]
        with contextlib.suppress(OSError, PermanentFailure, TransientFailure):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with open_store(self._file, "a cache", "delete it", _SCHEMA) as store:
                store.executemany("insert or replace into facts values (?, ?, ?)", rows)

    def _open(self) -> sqlite3.Connection | None:
        if not self._file.exists():
            return None
        try:
            # Each look-up is a transaction of its own: no other process waits for the end of a
            # block.
            return sqlite3.connect(self._file, isolation_level=None)
        except sqlite3.Error:
            return None

    def _give_up(self, error: sqlite3.Error) -> None:
        """Read no more of a file that cannot be read, and remove it where it is damaged."""
        if self._stored is not None:
            self._stored.close()
            self._stored = None
        # Subclasses stand for a full disk or a busy file, which leave it whole.
        if type(error) is sqlite3.DatabaseError:
            with contextlib.suppress(OSError):
                self._file.unlink()


@dataclass(slots=True)
class _Block:
    """The values computed within a block of `read_cache`."""

    facts: FactStore | None
    """None where the block names no folder for them."""
    values: OrderedDict[Hashable, dict[Hashable, object]]
    """File or folder that was read, None for neither → key → value; those used last come last."""


_block: ContextVar[_Block | None] = ContextVar("read_cache", default=None)


@contextlib.contextmanager
def read_cache(folder: Path | None = None) -> Iterator[None]:
    """Within the block, `once` and `remember` compute nothing twice, unless thousands of other
    files were read meanwhile. folder: where facts are kept on this machine's disk; None keeps them
    for the block alone.

    For reading many files and changing few: 24 months of 40 tables take 40 requests to a store
    instead of 960. Changes by other processes are not seen meanwhile; `forget` is called for those
    of this one. A block within another is part of it.
    """
    if _block.get() is not None:
        yield
        return
    facts = None if folder is None else FactStore(folder / "facts.sqlite")
    token = _block.set(_Block(facts, OrderedDict()))
    try:
        yield
    finally:
        _block.reset(token)
        if facts is not None:
            facts.close()


def is_active() -> bool:
    """Whether a `read_cache` is in place."""
    return _block.get() is not None


def once(key: Hashable, compute: Callable[[], T], source: Hashable = None) -> T:
    """The result of `compute`, which is called once for each key and source within a `read_cache`;
    without one, each time. source: the file or folder that it reads; `forget` drops its results.
    """
    block = _block.get()
    if block is None:
        return compute()
    values = block.values.setdefault(source, {})
    block.values.move_to_end(source)
    if len(block.values) > _MOST_SOURCES:
        block.values.popitem(last=False)
    value = values.get(key, _ABSENT)
    if value is _ABSENT:
        value = values[key] = compute()
    return cast(T, value)


def forget(file: Any) -> None:
    """Drop the cached results of a file and of its folder, which this process changes."""
    block = _block.get()
    if block is not None:
        block.values.pop(file, None)
        block.values.pop(file.parent, None)


def remember(name: str, version: str, compute: Callable[[], str]) -> str:
    """A fact that depends on `version` alone, read from the folder of the `read_cache`, or computed
    and stored there. name: unique to a file and use.
    """
    block = _block.get()
    if block is None or block.facts is None:
        return compute()
    fact = block.facts.find(name, version)
    if fact is None:
        fact = compute()
        block.facts.add(name, version, fact)
    return fact
