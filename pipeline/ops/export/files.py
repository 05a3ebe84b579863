"""The data files of an export: one Parquet file for each month of a table, streamed, and the list of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline import __version__
from pipeline.errors import TransientFailure
from pipeline.ops.export.folder import MANIFEST
from pipeline.ops.export.months import Month, batches, changed
from pipeline.ops.export.shaping import Shape
from pipeline.storage.data_root import DataRoot
from pipeline.storage.writing import move_into_place, write_whole


@dataclass(frozen=True, slots=True)
class DataFile:
    """One file of an export."""

    table: str
    month: str
    rows: int
    bytes: int
    sha256: str
    source_sha256: str
    """What tells the rows that it was made of (`Month.rows_sha256`)."""

    @property
    def path(self) -> str:
        """Where it lies below the export's folder."""
        return f"{self.table}/{self.month}.parquet"


def write_month(root: DataRoot, month: Month, shape: Shape, licences: Mapping[str, str], folder: Path) -> DataFile:
    """Write a month of a table into an export's folder, one row group in memory at a time.

    Raises TransientFailure where the month is written anew meanwhile, so that its rows would be of two makings.
    """
    file = folder / month.table.name / f"{month.month}.parquet"
    file.parent.mkdir(parents=True, exist_ok=True)
    staged = file.with_suffix(".tmp")
    with pq.ParquetWriter(staged, shape.schema, compression="zstd", use_dictionary=_dictionaries(shape.schema)) as out:
        for batch in batches(root, month, shape.columns):
            if batch.num_rows:  # a group without rows is one that `datasets` fails on
                out.write_batch(shape.shaped(batch, licences))
    if changed(root, month):
        raise TransientFailure(
            f"{month.table.name} of {month.month} changed while it was exported: run the same command again"
        )
    move_into_place(staged, file)
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return DataFile(month.table.name, month.month, month.rows, file.stat().st_size, digest, month.rows_sha256)


def write_manifest(files: Sequence[DataFile], texts: str, folder: Path) -> None:
    """Write the list of the export's files, with what each was made of."""
    told = {
        "made_by": f"citeloom {__version__}",
        "texts": texts,
        "files": {
            file.path: {"rows": file.rows, "sha256": file.sha256, "source_rows_sha256": file.source_sha256}
            for file in files
        },
    }
    write_whole(folder / MANIFEST, (json.dumps(told, indent=1, sort_keys=True) + "\n").encode())


def _dictionaries(schema: pa.Schema) -> list[str]:
    """Columns that a dictionary makes smaller: of texts. Two floats are seldom alike, and one of them costs time."""
    return [column.name for column in schema if pa.types.is_string(column.type)]
