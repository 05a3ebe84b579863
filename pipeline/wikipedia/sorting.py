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
from typing import NamedTuple

import pyarrow as pa

# Seven million articles of the English Wikipedia are some 100 GB of rows: 200 runs. Each is an open file while runs
# are merged, of which a process often may have 1,024. With runs of 16 MB, memory was 130 MB whether 40 MB of rows were
# sorted or 805, and 30,000 rows a second of one core came out of the merge.
RUN_BYTES = 512_000_000
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


def newest_first(
    batches: Iterable[pa.RecordBatch], folder: Path, schema: pa.Schema, on_older: Callable[[str, int], None]
) -> Iterator[pa.RecordBatch]:
    """The newest row of each page in order of ids, in batches of `schema`; `batches` have the columns of `with_order`.

    Runs are written to `folder`, which is emptied first and removed at the end. on_older: called with the id and the
    revision of each row that is not kept.
    """
    shutil.rmtree(folder, ignore_errors=True)  # of an import that was killed
    folder.mkdir(parents=True)
    try:
        runs = list(_write_runs(batches, folder, with_order(schema)))
        merged = heapq.merge(*map(_read_run, runs), key=lambda row: row[:3])
        newest = _newest_rows(merged, on_older)
        while rows := list(islice(newest, _BATCH_ROWS)):
            yield pa.Table.from_batches(rows).select(schema.names).combine_chunks().to_batches()[0]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _newest_rows(rows: Iterable[_Row], on_older: Callable[[str, int], None]) -> Iterator[pa.RecordBatch]:
    last: str | None = None
    for row in rows:
        if row.page == last:
            on_older(row.page, -row.older)
        else:
            last = row.page
            yield row.batch


def _write_runs(batches: Iterable[pa.RecordBatch], folder: Path, schema: pa.Schema) -> Iterator[Path]:
    pending: list[pa.RecordBatch] = []
    size = written = 0
    for batch in batches:
        pending.append(batch)
        size += batch.nbytes
        if size >= RUN_BYTES:
            yield _write_run(folder / f"{written}.arrow", pending, schema)
            pending, size, written = [], 0, written + 1
    yield _write_run(folder / f"{written}.arrow", pending, schema)


def _write_run(file: Path, batches: list[pa.RecordBatch], schema: pa.Schema) -> Path:
    rows = pa.Table.from_batches(batches, schema).sort_by(_ORDER)
    with pa.ipc.new_file(file, schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(rows, max_chunksize=_RUN_BATCH_ROWS)
    return file


def _read_run(file: Path) -> Iterator[_Row]:
    with pa.OSFile(str(file)) as source, pa.ipc.open_file(source) as run:
        for number in range(run.num_record_batches):
            batch = run.get_batch(number)
            order = zip(*(batch.column(name).to_pylist() for name, _ in _ORDER), strict=True)
            for place, (page, revision, came) in enumerate(order):
                yield _Row(page, -revision, came, batch.slice(place, 1))
