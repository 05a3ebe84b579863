"""What people gave, put into a month's table: one import at a time, whole or not at all, with the
files it came from.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from filelock import FileLock, Timeout

from pipeline import __version__
from pipeline.engine.stage import Workspace
from pipeline.errors import TransientFailure
from pipeline.storage.data_root import DataRoot
from pipeline.storage.provenance import Provenance, read_provenance
from pipeline.storage.store import DataPath
from pipeline.storage.writing import MonthWriter, Row
from pipeline.tables import Table

# An import takes well under a second; another one that holds the table for a minute has met trouble.
PATIENCE_SECONDS = 60


@contextmanager
def exclusive(workspace: Workspace, table: Table, patience_seconds: float) -> Iterator[None]:
    """Hold a table of people's for one import. Raises TransientFailure where another one does not end."""
    lock = FileLock(workspace.cache("locks") / f"{table.name}.lock", timeout=patience_seconds)
    try:
        lock.acquire()
    except Timeout as error:
        raise TransientFailure(f"another import holds {lock.lock_file}: let it end, then try again") from error
    try:
        yield
    finally:
        lock.release()


def origin_of(name: str, content: bytes) -> dict[str, str]:
    """File name with a piece of its digest → digest: files that come back are often named alike."""
    digest = hashlib.sha256(content).hexdigest()
    return {f"{name} {digest[:8]}": digest}


def rows_there(root: DataRoot, table: Table, month: str) -> list[Row]:
    """A month's rows, none where there is no file."""
    return [*root.rows(table, month)] if root.file(table, month).exists() else []


def write_month(
    root: DataRoot, table: Table, month: str, rows: Iterable[Row], order: Sequence[str], origins: Mapping[str, str]
) -> DataPath:
    """Write a month's rows, sorted by the columns of `order`; the same rows and files give the same bytes."""
    file = root.file(table, month)
    old = read_provenance(file)
    inputs = {**(old.inputs if old else {}), **origins}
    fingerprint = hashlib.sha256("\n".join(sorted(inputs.values())).encode()).hexdigest()
    with MonthWriter(table, file) as writer:
        for row in sorted(rows, key=lambda row: [row[column] for column in order]):
            writer.add(row)
        writer.commit(
            Provenance(table.name, month, table.version, 1, __version__, fingerprint, {}, dict(sorted(inputs.items())))
        )
    return file
