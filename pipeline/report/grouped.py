"""Rows of several tables task by task, or question by question, in bounded memory.

A month may have 1,000 tasks with eight systems each, whose traces are hundreds of kilobytes: nobody holds them all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.storage.data_root import DataRoot
from pipeline.storage.provenance import read_provenance
from pipeline.storage.reading import open_parquet
from pipeline.tables import Table, Writer, writer_of

Row = dict[str, Any]

# A section with its trace may have a megabyte: of these few are held, where a row group has 2,000.
_ROWS_AT_ONCE = 16


class Grouped:
    """A month of a table, asked for the rows of one task after another, in order of task id; empty where the table is
    not there.

    key: the column that says which task, or question, a row is of. writer: whose rows to read, of a table that has
    those of each writer together; None for all rows.
    """

    def __init__(
        self,
        root: DataRoot,
        month: str,
        table: Table,
        columns: Sequence[str] | None = None,
        key: str = "task_id",
        writer: Writer | None = None,
    ) -> None:
        rows = _rows(root, month, table, columns, key, writer)
        self._groups = groupby(rows, key=lambda row: str(row[key]))
        self._next: tuple[str, Iterator[Row]] | None = next(self._groups, None)

    def of(self, task_id: str) -> list[Row]:
        """The rows of a task, in the table's order; of one that comes before one asked for earlier there are none."""
        while self._next is not None and self._next[0] < task_id:
            self._next = next(self._groups, None)
        if self._next is None or self._next[0] != task_id:
            return []
        found = list(self._next[1])
        self._next = next(self._groups, None)
        return found


def grouped_by_writer(root: DataRoot, month: str, table: Table, key: str = "task_id") -> list[Grouped]:
    """The rows of each writer of a month, by writer's name."""
    if read_provenance(root.file(table, month)) is None:
        return []
    rows = root.read(table, month, ["system", "model"]).group_by(["system", "model"]).aggregate([]).to_pylist()
    writers = sorted((writer_of(row) for row in rows), key=lambda writer: writer.name)
    return [Grouped(root, month, table, key=key, writer=writer) for writer in writers]


def _rows(
    root: DataRoot, month: str, table: Table, columns: Sequence[str] | None, key: str, writer: Writer | None
) -> Iterator[Row]:
    """The rows by the key. A table that is in another order is read whole and put into this one."""
    if read_provenance(root.file(table, month)) is None:
        return
    mine = _places_of(root, month, table, writer)
    ids = root.read(table, month, [key])[key].combine_chunks()
    if mine is not None:
        ids = ids.take(mine)
    if not _ascending(ids):
        rows = root.read(table, month, list(columns) if columns else None)
        yield from (rows if mine is None else rows.take(mine)).take(pc.sort_indices(ids)).to_pylist()
        return
    first = mine[0].as_py() if mine is not None and len(mine) else 0
    last = mine[-1].as_py() if mine is not None and len(mine) else len(ids) - 1
    try:
        with open_parquet(root.file(table, month)) as parquet:
            place = 0
            for batch in parquet.iter_batches(_ROWS_AT_ONCE, columns=list(columns) if columns else None):
                begin, end = max(first - place, 0), min(last + 1 - place, batch.num_rows)
                if begin < end:
                    rows_wanted = batch.slice(begin, end - begin).to_pylist(maps_as_pydicts="strict")
                    yield from (row for row in rows_wanted if writer is None or writer_of(row) == writer)
                place += batch.num_rows
                if place > last:
                    return
    except (OSError, pa.ArrowInvalid):
        root.read(table, month)  # names the file and says what to do
        raise


def _places_of(root: DataRoot, month: str, table: Table, writer: Writer | None) -> pa.Array | None:
    """The places of a writer's rows in the table; None for all rows."""
    if writer is None:
        return None
    rows = root.read(table, month, ["system", "model"]).to_pylist()
    return pa.array([place for place, row in enumerate(rows) if writer_of(row) == writer], pa.int64())


def _ascending(ids: pa.Array) -> bool:
    return len(ids) < 2 or bool(pc.all(pc.less_equal(ids[:-1], ids[1:])).as_py())
