"""Row groups of a fixed size, and the SHA-256 of their rows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import pyarrow as pa

from pipeline.tables import Table


class RowGroups:
    """Cuts rows into groups of the table's `rows_per_group`, and digests them.

    Groups and digest depend on the rows only, not on the batches that they come in. Settings are
    not part of the digest, so downstream months stay valid where only a setting changed.
    """

    def __init__(self, table: Table) -> None:
        self._table = table
        self._pending: list[pa.RecordBatch] = []
        self._digest = hashlib.sha256()

    @property
    def sha256(self) -> str:
        """The digest of the groups returned so far, hexadecimal."""
        return self._digest.hexdigest()

    def add(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The groups that are complete with these rows."""
        pending = pa.Table.from_batches([*self._pending, batch], self._table.schema)
        size = self._table.rows_per_group
        complete = pending.num_rows - pending.num_rows % size
        for start in range(0, complete, size):
            yield from self._group(pending.slice(start, size))
        self._pending = pending.slice(complete).to_batches()

    def finish(self) -> Iterator[pa.RecordBatch]:
        """The last group, if any rows are left."""
        if self._pending:
            yield from self._group(pa.Table.from_batches(self._pending))

    def _group(self, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        # `take` copies the rows: slices of other batches would serialise with bits of their
        # neighbours.
        copied = rows.take(pa.array(range(rows.num_rows), pa.int32())).combine_chunks()
        for batch in copied.to_batches():
            self._digest.update(batch.serialize())
            yield batch
