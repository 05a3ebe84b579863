"""Small stores in SQLite files, opened for each use."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from pipeline.errors import PermanentFailure

_LOCK_SECONDS = 60.0


@contextlib.contextmanager
def open_store(
    file: Path, content: str, way_out: str, schema: str = ""
) -> Iterator[sqlite3.Connection]:
    """A connection within one transaction, which is committed at the end of the block.

    content, way_out: what the file holds and what a user can do, for the message. schema: one
    statement that creates the table unless it exists. Raises PermanentFailure for errors of SQLite.
    """
    try:
        with contextlib.closing(sqlite3.connect(file, timeout=_LOCK_SECONDS)) as store, store:
            store.execute(schema)
            yield store
    except sqlite3.Error as error:
        raise PermanentFailure(
            f"{content}, {file}, cannot be read or written ({error}): {way_out}"
        ) from error
