"""Opening Parquet files of the data root, on a disk or an object store.

The checksum of each data page is verified; files that earlier versions wrote have none.
"""

from __future__ import annotations

import contextlib
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
    with open_file(file) as source:
        return pq.read_table(source, columns=columns, page_checksum_verification=True)
