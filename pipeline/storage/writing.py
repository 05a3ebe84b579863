"""Writing months of tables, and small files, whole or not at all.

A month is written as zstd Parquet under a temporary name beside its own and moved into place; for
an object store, on this machine's disk and then in one upload.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.storage.provenance import METADATA_KEY, Provenance
from pipeline.storage.read_cache import forget
from pipeline.storage.store import DataPath, staging_file
from pipeline.tables import Table

Row = Mapping[str, Any]

# Seconds after which no process reads a replaced file of a cache any more.
_STALE_SECONDS = 24 * 3600.0


class MonthWriter:
    """Writes one month of one table, whole or not at all.

    A context manager: `add` and `add_batch` take rows, `commit` moves the file into place; without
    it the block leaves no file. Holds less than one row group and one batch in memory.
    """

    def __init__(self, table: Table, file: DataPath) -> None:
        self._table, self._file = table, file
        self._rows: list[Row] = []
        self._groups = RowGroups(table)
        self.added = 0

    def __enter__(self) -> MonthWriter:
        file = self._file
        self._staged = staging_file(file) if isinstance(file, Path) else file.local_staging_file()
        # Floats rarely repeat: with a dictionary of them, vectors took three times as long to read.
        columns = [
            leaf for column in self._table.schema for leaf in _leaves(column.name, column.type)
        ]
        repeating = [path for path, kind in columns if not pa.types.is_floating(kind)]
        self._parquet = pq.ParquetWriter(
            self._staged,
            self._table.schema,
            compression="zstd",
            use_dictionary=repeating,
            write_page_checksum=True,
        )
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._parquet.close()
        self._staged.unlink(missing_ok=True)

    def add(self, row: Row) -> None:
        """Add one row. Raises KeyError for a column that the table does not have."""
        unknown = row.keys() - set(self._table.schema.names)
        if unknown:
            raise KeyError(f"{self._table.name} has no column {', '.join(sorted(unknown))}")
        self._rows.append(row)
        self.added += 1
        if len(self._rows) >= self._table.rows_per_group:
            self._convert_rows()

    def add_batch(self, batch: pa.RecordBatch) -> None:
        """Add Arrow rows. Raises ValueError where their columns are not the table's."""
        if not batch.schema.equals(self._table.schema):
            raise ValueError(f"a batch for {self._table.name} has other columns: {batch.schema}")
        self._convert_rows()
        self.added += batch.num_rows
        self._write(self._groups.add(batch))

    def commit(self, provenance: Provenance) -> Provenance:
        """Move the month into place. Returns its provenance, with row count and digest filled
        in.
        """
        self._convert_rows()
        self._write(self._groups.finish())
        complete = replace(provenance, rows=self.added, rows_sha256=self._groups.sha256)
        self._parquet.add_key_value_metadata(
            {METADATA_KEY: json.dumps(asdict(complete), sort_keys=True).encode()}
        )
        self._parquet.close()
        if isinstance(self._file, Path):
            move_into_place(self._staged, self._file)
        else:
            self._file.upload(self._staged)
        return complete

    def _convert_rows(self) -> None:
        rows, self._rows = self._rows, []
        if rows:
            batch = pa.RecordBatch.from_pylist(rows, schema=self._table.schema)
            self._write(self._groups.add(batch))

    def _write(self, groups: Iterable[pa.RecordBatch]) -> None:
        for group in groups:
            self._parquet.write_batch(group, self._table.rows_per_read)


def _leaves(path: str, kind: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    """The Parquet columns that an Arrow column becomes, with their types."""
    if pa.types.is_list(kind):
        yield from _leaves(f"{path}.list.element", kind.value_type)
    elif pa.types.is_struct(kind):
        for part in kind:
            yield from _leaves(f"{path}.{part.name}", part.type)
    elif pa.types.is_map(kind):
        yield from _leaves(f"{path}.key_value.key", kind.key_type)
        yield from _leaves(f"{path}.key_value.value", kind.item_type)
    else:
        yield path, kind


def write_whole(file: DataPath, content: bytes) -> None:
    """Write a small file, whole or not at all."""
    if not isinstance(file, Path):
        file.write_bytes(content)
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    staged = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    staged.write_bytes(content)
    move_into_place(staged, file)


def write_cache_file(file: Path, content: bytes, pattern: str) -> None:
    """Write a small file, whole or not at all.

    Of the files beside it that match the pattern, those that are a day old are removed, and what
    killed writes of such files left.
    """
    write_whole(file, content)
    for other in (*file.parent.glob(pattern), *file.parent.glob(f".{pattern}.*.tmp")):
        with contextlib.suppress(FileNotFoundError):
            if other != file and time.time() - other.stat().st_mtime > _STALE_SECONDS:
                other.unlink()


def move_into_place(staged: Path, file: Path) -> None:
    """Flush a finished file to disk and rename it; an incomplete file never gets the name."""
    _sync(staged)
    os.replace(staged, file)
    forget(file)
    _sync(file.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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
