"""Writing one month of one table, and small files, whole or not at all.

A month is written as zstd Parquet under a temporary name beside its own and moved into place; where it lies on an
object store, on this machine's disk, and goes up in one upload.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.storage.provenance import METADATA_KEY, Provenance
from pipeline.storage.store import Place
from pipeline.tables import Table

Row = Mapping[str, Any]


class MonthWriter:
    """Writes one month of one table, whole or not at all.

    A context manager: rows go in by `add` or `add_batch`; `commit` moves the file into place; leaving without it
    removes what was begun. Holds less than a row group and one batch.
    """

    def __init__(self, table: Table, file: Place) -> None:
        self._table, self._file = table, file
        self._rows: list[Row] = []
        self._held = table.schema.empty_table()
        self._digest = hashlib.sha256()
        self.added = 0

    def __enter__(self) -> MonthWriter:
        self._staged = _staged(self._file)
        # A dictionary of floats finds no two alike: with one, vectors took three times as long to read.
        named = [path for column in self._table.schema for path, texts in _leaves(column.name, column.type) if texts]
        self._parquet = pq.ParquetWriter(self._staged, self._table.schema, compression="zstd", use_dictionary=named)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):
            self._parquet.close()
        self._staged.unlink(missing_ok=True)

    def add(self, row: Row) -> None:
        """Take one row; raises KeyError for a column that the table does not have."""
        unknown = row.keys() - set(self._table.schema.names)
        if unknown:
            raise KeyError(f"{self._table.name} has no column {', '.join(sorted(unknown))}")
        self._rows.append(row)
        self.added += 1
        if len(self._rows) >= self._table.rows_per_group:
            self._take_rows()

    def add_batch(self, batch: pa.RecordBatch) -> None:
        """Take rows that are Arrow's already; raises ValueError where their columns are not the table's."""
        if not batch.schema.equals(self._table.schema):
            raise ValueError(f"a batch for {self._table.name} has other columns: {batch.schema}")
        self._take_rows()
        self.added += batch.num_rows
        self._hold(batch)

    def commit(self, provenance: Provenance) -> Provenance:
        """Put the month in place with its provenance, rows and their digest filled in."""
        self._take_rows()
        self._write(self._held)
        complete = replace(provenance, rows=self.added, rows_sha256=self._digest.hexdigest())
        self._parquet.add_key_value_metadata({METADATA_KEY: json.dumps(asdict(complete), sort_keys=True).encode()})
        self._parquet.close()
        if isinstance(self._file, Path):
            move_into_place(self._staged, self._file)
        else:
            self._file.upload(self._staged)
        return complete

    def _take_rows(self) -> None:
        rows, self._rows = self._rows, []
        if rows:
            self._hold(pa.RecordBatch.from_pylist(rows, schema=self._table.schema))

    def _hold(self, batch: pa.RecordBatch) -> None:
        held = pa.concat_tables([self._held, pa.Table.from_batches([batch], self._table.schema)])
        size = self._table.rows_per_group
        whole = held.num_rows - held.num_rows % size
        for start in range(0, whole, size):
            self._write(held.slice(start, size))
        self._held = held.slice(whole)

    def _write(self, rows: pa.Table) -> None:
        """One row group. Groups depend on the rows alone, not on how they came, and so does their digest.

        The digest is over the rows and nothing else, so that what is downstream stays valid where only a setting
        changed.
        """
        # `take` lays the rows out afresh: slices of other batches would serialise with their neighbours' bits.
        for batch in rows.take(pa.array(range(rows.num_rows), pa.int32())).combine_chunks().to_batches():
            self._digest.update(batch.serialize())
            self._parquet.write_batch(batch)


def _leaves(path: str, kind: pa.DataType) -> Iterator[tuple[str, bool]]:
    """Every column of numbers or texts that Parquet makes of one of ours, and whether it holds anything but floats."""
    if pa.types.is_list(kind):
        yield from _leaves(f"{path}.list.element", kind.value_type)
    elif pa.types.is_struct(kind):
        for part in kind:
            yield from _leaves(f"{path}.{part.name}", part.type)
    elif pa.types.is_map(kind):
        yield from _leaves(f"{path}.key_value.key", kind.key_type)
        yield from _leaves(f"{path}.key_value.value", kind.item_type)
    else:
        yield path, not pa.types.is_floating(kind)


def _staged(file: Place) -> Path:
    """Where a month is written before it has its name. What killed runs left is removed: the caller holds the month, so
    nobody writes it."""
    if not isinstance(file, Path):
        return file.staged()
    file.parent.mkdir(parents=True, exist_ok=True)
    for orphan in file.parent.glob(f".{file.name}.*.tmp"):
        orphan.unlink(missing_ok=True)
    return file.with_name(f".{file.name}.{os.getpid()}.tmp")


def write_whole(file: Place, content: bytes) -> None:
    """Write a small file, whole or not at all."""
    if not isinstance(file, Path):
        file.write_bytes(content)
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    staged = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    staged.write_bytes(content)
    move_into_place(staged, file)


def move_into_place(staged: Path, file: Path) -> None:
    """Flush a finished file to disk and give it its name: a torn file cannot bear it."""
    _sync(staged)
    os.replace(staged, file)
    _sync(file.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
