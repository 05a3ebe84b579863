"""Small stores in SQLite files, opened for each use."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from pipeline.errors import PermanentFailure, TransientFailure

# How long a process waits for the others that have a file open.
LOCK_SECONDS = 60.0


@contextlib.contextmanager
def open_store(
    file: Path, content: str, way_out: str, schema: str = ""
) -> Iterator[sqlite3.Connection]:
    """A connection within one transaction, which is committed at the end of the block.

    content, way_out: what the file holds and what a user can do, for the message. schema: one
    statement that creates the table unless it exists. Raises as `named_errors` does.
    """
    with (
        named_errors(file, content, way_out),
        contextlib.closing(sqlite3.connect(file, timeout=LOCK_SECONDS)) as store,
        store,
    ):
        store.execute(schema)
        yield store


@contextlib.contextmanager
def named_errors(file: Path | None, content: str, way_out: str) -> Iterator[None]:
    """Errors of SQLite in the block as a PermanentFailure that names the file, its content, and
    what a user can do; a TransientFailure where another process keeps the file locked, or its disk
    is full.
    """
    try:
        yield
    except sqlite3.Error as error:
        message = f"{content}, {file}, cannot be read or written ({error})"
        # The low byte is the error's kind (https://www.sqlite.org/rescode.html).
        passing = {
            sqlite3.SQLITE_BUSY: "end the process that has it open, or wait for it",
            sqlite3.SQLITE_FULL: "make room on its disk, or set CITELOOM_DATA to another",
        }
        way_on = passing.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)
        if way_on:
            raise TransientFailure(f"{message}: {way_on}, and run again") from error
        raise PermanentFailure(f"{message}: {way_out}") from error


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """A transaction that may write, rolled back where the block raises."""
    connection.execute("begin immediate")
    try:
        yield
    except BaseException:
        if connection.in_transaction:  # a full disk has ended it
            connection.execute("rollback")
        raise
    connection.execute("commit")
