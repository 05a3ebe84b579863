"""Sort the rows of a snapshot by id and keep the newest revision of each page.

An external merge sort: runs of RUN_BYTES are sorted and put on disk, then read side by side a few rows at a time. So
memory holds one run, or a few rows of every run, however many pages there are.
"""

from __future__ import annotations

import heapq
import shutil
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

import pyarrow as pa

# Seven million articles of the English Wikipedia are some 100 GB of rows: 400 runs. With runs of 16 MB, memory was
# 130 MB whether 40 MB of rows were sorted or 805, and 30,000 rows a second of one core came out of the merge.
RUN_BYTES = 256_000_000
# Each is an open file while runs are merged, of which a process often may have 1,024; beyond, runs become one.
MOST_RUNS = 256
_RUN_BATCH_ROWS = 8
_BATCH_ROWS = 100
# Columns added for sorting: the revision of a row, and its line.
REVISION, PLACE = pa.field("revision", pa.int64()), pa.field("place", pa.int64())
_ORDER = [("arxiv_id", "ascending"), ("revision", "descending"), ("place", "ascending")]


class _Row(NamedTuple):
    """One row of a run; tuples compare by id, newest revision, place, and no two rows share a place."""

    page: str
    older: int
    place: int
    batch: pa.RecordBatch


def with_order(schema: pa.Schema) -> pa.Schema:
    """A table's columns and those that rows are ordered by; a row's id is its column arxiv_id."""
    return schema.append(REVISION).append(PLACE)


class NewestFirst:
    """Takes batches of rows in any order and gives each page's newest row, in order of ids.

    A context manager, which empties its folder on entry and removes it on exit. on_older: called with the id and the
    revision of each row that is not kept.
    """

    def __init__(self, folder: Path, schema: pa.Schema, on_older: Callable[[str, int], None]) -> None:
        self._folder, self._schema = folder, with_order(schema)
        self._columns, self._on_older = schema.names, on_older
        self._pending: list[pa.RecordBatch] = []
        self._bytes = 0
        self._runs: list[Path] = []
        self._written = 0

    def __enter__(self) -> NewestFirst:
        shutil.rmtree(self._folder, ignore_errors=True)  # of an import that was killed
        self._folder.mkdir(parents=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows, with the columns of `with_order`."""
        if batch.num_rows:
            self._pending.append(batch)
            self._bytes += batch.nbytes
        if self._bytes >= RUN_BYTES:
            self._write_run()

    def rows(self) -> Iterator[pa.RecordBatch]:
        """The newest row of each page, without the added columns, in batches."""
        if self._pending:
            self._write_run()
        batch: list[pa.RecordBatch] = []
        last: str | None = None
        for row in _merged(self._runs):
            if row.page == last:
                self._on_older(row.page, -row.older)
                continue
            last = row.page
            batch.append(row.batch)
            if len(batch) == _BATCH_ROWS:
                yield self._joined(batch)
                batch = []
        if batch:
            yield self._joined(batch)

    def _write_run(self) -> None:
        self._write([pa.Table.from_batches(self._pending, self._schema).sort_by(_ORDER)])
        self._pending, self._bytes = [], 0
        if len(self._runs) == MOST_RUNS:
            merged, self._runs = self._runs, []
            self._write(pa.Table.from_batches(rows, self._schema).combine_chunks() for rows in _small_batches(merged))
            for file in merged:
                file.unlink()

    def _write(self, tables: Iterable[pa.Table]) -> None:
        """One run of tables that are in order."""
        file = self._folder / f"{self._written}.arrow"
        with pa.ipc.new_file(file, self._schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
            for table in tables:
                writer.write_table(table, max_chunksize=_RUN_BATCH_ROWS)
        self._runs.append(file)
        self._written += 1

    def _joined(self, rows: list[pa.RecordBatch]) -> pa.RecordBatch:
        table = pa.Table.from_batches(rows, self._schema).select(self._columns)
        return table.combine_chunks().to_batches()[0]


def _merged(runs: Iterable[Path]) -> Iterator[_Row]:
    return heapq.merge(*map(_read_run, runs), key=lambda row: row[:3])


def _small_batches(runs: Iterable[Path]) -> Iterator[list[pa.RecordBatch]]:
    rows = _merged(runs)
    while batches := [row.batch for row in islice(rows, _RUN_BATCH_ROWS)]:
        yield batches


def _read_run(file: Path) -> Iterator[_Row]:
    with pa.OSFile(str(file)) as source, pa.ipc.open_file(source) as run:
        for number in range(run.num_record_batches):
            batch = run.get_batch(number)
            order = zip(*(batch.column(name).to_pylist() for name, _ in _ORDER), strict=True)
            for place, (page, revision, came) in enumerate(order):
                yield _Row(page, -revision, came, batch.slice(place, 1))
