"""Where every month of every table lies, and the reading of it.

One table, one month, one file: `<data root>/<table>/<YYYY-MM>.parquet`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.errors import MissingInput, PermanentFailure
from pipeline.storage.provenance import read_provenance
from pipeline.storage.reading import open_file, open_parquet
from pipeline.storage.store import Place
from pipeline.tables import LEDGER, Table


@dataclass(frozen=True, slots=True)
class DataRoot:
    """The folder that holds every table, on a disk or an object store."""

    path: Place

    def file(self, table: Table, month: str) -> Place:
        """Where a month of a table lies."""
        return self.path / table.name / f"{month}.parquet"

    def ledger_file(self, stage: str, month: str) -> Place:
        """Where a stage's ledger of a month lies; each stage owns its own, so no two writers meet."""
        return self.path / LEDGER.name / stage / f"{month}.parquet"

    def months(self, table: Table) -> list[str]:
        """Months of a table that are there, oldest first."""
        return sorted(file.stem for file in (self.path / table.name).glob("*.parquet"))

    def read(self, table: Table, month: str, columns: list[str] | None = None) -> pa.Table:
        """A month of a table, or some columns of it.

        Raises MissingInput where the month is absent, PermanentFailure where the file is of another schema version,
        has other columns, or cannot be read.
        """
        # pq.read_table would import pandas, a quarter of a second of each command that reads a table.
        with self._opened(table, month) as source, pq.ParquetFile(source) as parquet:
            rows = parquet.read(columns=columns)
        return rows if columns is None else rows.select(columns)

    @contextlib.contextmanager
    def _opened(self, table: Table, month: str) -> Iterator[Any]:
        """A month's file, as pyarrow's readers take it. Raises as `read` does, also for what is read within."""
        file = self.file(table, month)
        provenance = read_provenance(file)
        if provenance is None:
            raise MissingInput(
                f"{table.name} of {month} is not there ({file}): run citeloom run --months {month} --until {table.name}"
            )
        if provenance.schema_version != table.version:
            raise PermanentFailure(
                f"{file} has schema version {provenance.schema_version}, this citeloom writes {table.version}: "
                f"run citeloom run --months {month} --select {table.name} --force"
            )
        with _damage_named(file, table, month), open_file(file) as source:
            _refuse_drift(file, pq.read_schema(source), table, month)
            yield source

    def rows(self, table: Table, month: str, columns: list[str] | None = None) -> list[dict[str, Any]]:
        """A month of a table as dictionaries. Raises as `read` does."""
        return list(self.read(table, month, columns).to_pylist(maps_as_pydicts="strict"))

    def iterate(self, table: Table, month: str, columns: list[str] | None = None) -> Iterator[dict[str, Any]]:
        """The rows of a month one by one, holding one row group at a time. Raises as `read` does."""
        for batch in self.batches(table, month, columns):
            yield from batch.to_pylist(maps_as_pydicts="strict")

    def batches(self, table: Table, month: str, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows of a month as Arrow batches, one row group or less at a time. Raises as `read` does."""
        # Reading ahead keeps all row groups until the last: 500 MB for a file of 400 MB, 120 MB without.
        with self._opened(table, month) as source, pq.ParquetFile(source, pre_buffer=False) as parquet:
            yield from parquet.iter_batches(batch_size=table.rows_per_group, columns=columns)

    def count_groups(self, table: Table, month: str) -> int:
        """How many row groups a month has. Raises as `read` does."""
        with self._opened(table, month) as source:
            return int(pq.read_metadata(source).num_row_groups)

    def group(self, table: Table, month: str, number: int, columns: list[str] | None = None) -> pa.RecordBatch:
        """One row group of a month, counted from 0, for a worker that was told which. Raises PermanentFailure where
        it cannot be read."""
        file = self.file(table, month)
        with _damage_named(file, table, month), open_parquet(file) as parquet:
            return parquet.read_row_group(number, columns=columns).combine_chunks().to_batches()[0]


def _refuse_drift(file: Place, found: pa.Schema, table: Table, month: str) -> None:
    """Raise PermanentFailure where a file says that it is of the table's version, and its columns are others."""
    if found.equals(table.schema):
        return
    told = [f"{field.name} {field.type}{'' if field.nullable else ' not null'}" for field in found]
    wanted = [f"{field.name} {field.type}{'' if field.nullable else ' not null'}" for field in table.schema]
    other = [each for each in told if each not in wanted] + [each for each in wanted if each not in told]
    raise PermanentFailure(
        f"{file} does not have the columns of {table.name} ({', '.join(other) or 'in another order'}): "
        f"run citeloom run --months {month} --select {table.name} --force"
    )


@contextlib.contextmanager
def _damage_named(file: Place, table: Table, month: str) -> Iterator[None]:
    """Name the file whose pages cannot be read; its footer may well be whole."""
    try:
        yield
    except (OSError, pa.ArrowInvalid) as error:
        reason = " ".join(str(error).split())
        raise PermanentFailure(
            f"{file} is damaged ({reason}): run citeloom run --months {month} --select {table.name} --force"
        ) from error
