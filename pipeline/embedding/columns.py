"""Vectors of many texts as Arrow columns over the engine's arrays, without Python rows."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pipeline.embedding.embedder import SparseRows
from pipeline.embedding.packing import offsets_of
from pipeline.embedding.reuse import VECTORS
from pipeline.tables import EMBEDDINGS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipeline.embedding.embedder import VectorBatch

SCHEMA = pa.schema([EMBEDDINGS.schema.field(name).remove_metadata() for name in VECTORS])


def vector_columns(batch: VectorBatch) -> pa.Table:
    """The columns dense, sparse_ids, sparse_weights, colbert (null) and truncated of a batch."""
    columns = [
        _fixed_lists(batch.dense),
        _lists(batch.sparse.offsets, pa.array(batch.sparse.ids)),
        _lists(batch.sparse.offsets, pa.array(batch.sparse.weights)),
        pa.nulls(len(batch.dense), SCHEMA.field("colbert").type),
        pa.array(batch.truncated),
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def _fixed_lists(rows: NDArray[Any]) -> pa.ListArray:
    """A list for each row of a matrix."""
    import numpy as np

    count, width = rows.shape
    return _lists(
        np.arange(count + 1, dtype=np.int32) * np.int32(width), pa.array(rows.reshape(-1))
    )


def _lists(offsets: NDArray[Any] | None, values: pa.Array) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values)


def list_offsets(column: pa.ListArray) -> NDArray[Any]:
    """Where each row's list begins, from 0, and where the last ends; a null is an empty list."""
    import pyarrow.compute as pc

    return offsets_of(pc.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False))


def sparse_rows(ids: pa.ListArray, weights: pa.ListArray) -> SparseRows:
    """Sparse vectors of the columns sparse_ids and sparse_weights."""
    # Not from `column.values`, which also contains rows outside a slice.
    numbers = (column.flatten().to_numpy(zero_copy_only=False) for column in (ids, weights))
    return SparseRows(list_offsets(ids), *numbers)


class VectorStream:
    """Rows of an embedder's batches, taken in any number. Holds the rest of the last batch.

    on_batch: called with every batch.
    """

    def __init__(
        self, batches: Iterator[VectorBatch], on_batch: Callable[[VectorBatch], None]
    ) -> None:
        self._batches, self._on_batch = batches, on_batch
        self._unread = SCHEMA.empty_table()

    def take(self, count: int) -> pa.Table:
        """The next rows. Raises ValueError where the embedder gives fewer than it was given
        texts.
        """
        while self._unread.num_rows < count:
            batch = next(self._batches, None)
            if batch is None:
                raise ValueError(
                    f"the embedder gave {self._unread.num_rows} vectors for {count} texts"
                )
            self._unread = pa.concat_tables([self._unread, vector_columns(batch)])
            self._on_batch(batch)
        rows, self._unread = self._unread.slice(0, count), self._unread.slice(count)
        return rows

    def finish(self) -> None:
        """Raises ValueError where the embedder gives more vectors than it was given texts."""
        if self._unread.num_rows or next(self._batches, None) is not None:
            raise ValueError("the embedder gave more vectors than it was given texts")

    def close(self) -> None:
        """End the embedder's work, such as threads that tokenise ahead."""
        if isinstance(self._batches, Generator):
            self._batches.close()
