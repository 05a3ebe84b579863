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
from pipeline.tables import Table

Row = dict[str, Any]

# A section with its trace may have a megabyte: of these few are held, where a row group has 2,000.
_ROWS_AT_ONCE = 16


class Grouped:
    """A month of a table, asked for the rows of one task after another, in order of task id; empty where the table is
    not there. key: the column that says which task, or question, a row is of."""

    def __init__(
        self, root: DataRoot, month: str, table: Table, columns: Sequence[str] | None = None, key: str = "task_id"
    ) -> None:
        self._groups = groupby(_rows(root, month, table, columns, key), key=lambda row: str(row[key]))
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


def _rows(root: DataRoot, month: str, table: Table, columns: Sequence[str] | None, key: str) -> Iterator[Row]:
    """The rows by the key. A table that is in another order is read whole and put into this one."""
    if read_provenance(root.file(table, month)) is None:
        return
    ids = root.read(table, month, [key])[key].combine_chunks()
    if not _ascending(ids):
        yield from root.read(table, month, list(columns) if columns else None).take(pc.sort_indices(ids)).to_pylist()
        return
    try:
        with open_parquet(root.file(table, month)) as parquet:
            for batch in parquet.iter_batches(_ROWS_AT_ONCE, columns=list(columns) if columns else None):
                yield from batch.to_pylist(maps_as_pydicts="strict")
    except (OSError, pa.ArrowInvalid):
        root.read(table, month)  # names the file and says what to do
        raise


def _ascending(ids: pa.Array) -> bool:
    return len(ids) < 2 or bool(pc.all(pc.less_equal(ids[:-1], ids[1:])).as_py())
