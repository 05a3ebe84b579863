"""Rows of a month of a table, task by task or question by question, in bounded memory.

A month may have 1,000 tasks with eight systems each, whose traces are hundreds of kilobytes.
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
from pipeline.tables import Table
from pipeline.tables.writers import Writer, writer_of

Row = dict[str, Any]

# A section with its trace may have a megabyte, and a row group has 2,000 of them.
_ROWS_AT_ONCE = 16


class RowsByKey:
    """The rows of a month of a table for one task after another, in order of task id; none where the table is missing.

    key: the column with the task or question of a row. writer: whose rows to read, None for all.
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
        """The rows of a task, in the table's order. Ids must be given in ascending order."""
        while self._next is not None and self._next[0] < task_id:
            self._next = next(self._groups, None)
        if self._next is None or self._next[0] != task_id:
            return []
        rows = list(self._next[1])
        self._next = next(self._groups, None)
        return rows


def rows_by_writer(root: DataRoot, month: str, table: Table, key: str = "task_id") -> list[RowsByKey]:
    """The rows of each writer of a month, in order of their names."""
    if read_provenance(root.file(table, month)) is None:
        return []
    rows = root.read(table, month, ["system", "model"]).group_by(["system", "model"]).aggregate([]).to_pylist()
    writers = sorted((writer_of(row) for row in rows), key=lambda writer: writer.name)
    return [RowsByKey(root, month, table, key=key, writer=writer) for writer in writers]


def _rows(
    root: DataRoot, month: str, table: Table, columns: Sequence[str] | None, key: str, writer: Writer | None
) -> Iterator[Row]:
    """The rows in order of the key. A table in another order is read whole and sorted."""
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
