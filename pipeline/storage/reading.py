"""Opening Parquet files of the data root, on a disk or an object store.

The checksum of each data page is verified; files that earlier versions wrote have none.
"""

from __future__ import annotations

import contextlib
import stat
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.storage.store import DataPath

FOOTER_BYTES = 64 << 10
"""What is read ahead on a store. Most footers are under 30 KB; 100 row groups of 20 columns have
one of 150 KB.
"""


@contextlib.contextmanager
def open_file(file: DataPath) -> Iterator[Any]:
    """A file in the form that pyarrow reads; it may be read several times. Raises
    FileNotFoundError, and OSError for a folder or a named pipe, which would wait for a writer.
    """
    if isinstance(file, Path):
        if not stat.S_ISREG(file.stat().st_mode):
            raise OSError("it is no regular file")
        yield file
        return
    with file.open(FOOTER_BYTES) as source, pa.PythonFile(source, mode="r") as opened:
        yield opened


@contextlib.contextmanager
def open_parquet(file: DataPath, *, pre_buffer: bool = True) -> Iterator[pq.ParquetFile]:
    """A Parquet file. pre_buffer: fetch column chunks ahead, and keep them. Raises what pyarrow
    raises.
    """
    with (
        open_file(file) as source,
        pq.ParquetFile(source, pre_buffer=pre_buffer, page_checksum_verification=True) as parquet,
    ):
        yield parquet


def read_table(file: DataPath, columns: list[str] | None = None) -> pa.Table:
    """The rows of a Parquet file. Raises what pyarrow raises."""
    with open_parquet(file) as parquet:
        return read_columns(parquet, columns)


def read_columns(parquet: pq.ParquetFile, columns: list[str] | None = None) -> pa.Table:
    """The rows of an open file, with the columns in this order."""
    # pq.read_table would import pandas, a fifth of a second of each command that reads a table.
    # For one row group threads took longer to start than to read.
    rows = parquet.read(columns=columns, use_threads=parquet.num_row_groups > 1)
    return rows if columns is None else rows.select(columns)


def row_groups_with(parquet: pq.ParquetFile, column: str, values: Collection[str]) -> list[int]:
    """Row groups that may have one of these values in a text column, by their statistics."""
    place = parquet.metadata.schema.names.index(column)
    numbers = []
    for number in range(parquet.num_row_groups):
        bounds = parquet.metadata.row_group(number).column(place).statistics
        if bounds is not None and bounds.has_min_max:
            # Each access of a bound converts it.
            low, high = bounds.min, bounds.max
            if not any(low <= value <= high for value in values):
                continue
        numbers.append(number)
    return numbers


def text_array(values: Iterable[str]) -> pa.StringArray:
    """These texts, sorted, as Arrow's functions take them."""
    # pa.array and pa.scalar would import pandas.
    encoded = [value.encode() for value in sorted(values)]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    buffers = pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))
    return pa.StringArray.from_buffers(len(encoded), *buffers)
