"""The data root: where each month of each table is, how it is read, and what of it
earlier versions left.

One table, one month, one file: `<data root>/<table>/<YYYY-MM>.parquet`.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline.errors import MissingInput, PermanentFailure
from pipeline.storage.provenance import (
    Provenance,
    foreign_file,
    provenance_in,
    read_provenance,
    with_present_names,
)
from pipeline.storage.read_cache import once, remember
from pipeline.storage.reading import open_parquet, read_columns, row_groups_with, text_array
from pipeline.storage.store import DataPath, StorePath
from pipeline.storage.writing import RowGroups
from pipeline.tables import EMBEDDINGS, HUMAN_GRADES, HUMAN_RATINGS, LEDGER, Table
from pipeline.text import one_line

# Imported from annotators' sheets; no stage makes them.
_IMPORTED = (HUMAN_RATINGS, HUMAN_GRADES)

REMOVED_TABLES: Mapping[str, str] = {
    "question_drafts": "questions for people to review",
    "retrieval_queries": "citing sentences as queries",
    "retrieval_scores": "scores of search by citing sentences",
}
"""Table → what its rows were. Its ledger and its timings can be deleted too."""

REMOVED_FILES: Mapping[str, str] = {
    "watches": "papers that watches found",
    "reports/summaries": "what the report read of each month",
    "unfinished/index_receipts.txt": "a mark that watches were due",
    "failures/index_receipts-all-months.json": "a failure of watches",
}
"""File or folder, below the data root → what it was."""


@dataclass(frozen=True, slots=True)
class DataRoot:
    """The folder that holds every table, on a disk or an object store."""

    path: DataPath

    def file(self, table: Table, month: str) -> DataPath:
        """The file of a month of a table."""
        return _month_file(self.path, table.name, month)

    def ledger_file(self, stage: str, month: str) -> DataPath:
        """The file of a stage's ledger of a month; each stage has its own, with one writer."""
        return _month_file(self.path, f"{LEDGER.name}/{stage}", month)

    def ledger(self, stage: str, month: str, columns: list[str] | None = None) -> pa.Table:
        """The rows of a stage's ledger of a month; none where it is missing. Raises
        PermanentFailure where it cannot be read.
        """
        file = self.ledger_file(stage, month)
        if read_provenance(file) is None:
            return LEDGER.schema.empty_table().select(columns or LEDGER.schema.names)
        with _named_damage(file, LEDGER, month), open_parquet(file) as parquet:
            rows = read_columns(parquet, columns)
            return with_present_names(rows, parquet.metadata, file)

    def folder(self, name: str) -> DataPath:
        """A folder of the data root: of a table, or of other files, such as failures."""
        return _folder(self.path, name)

    def months(self, table: Table) -> list[str]:
        """The months of a table that exist, oldest first."""
        folder = self.folder(table.name)
        return list(once("months", partial(_months_in, folder), folder))

    def exists(self, table: Table, month: str) -> bool:
        """Whether a month's file exists now; `read_cache` is not used."""
        file = self.file(table, month)
        if isinstance(file, Path):
            return file.is_file()
        try:
            return bool(file.read_end(1))
        except FileNotFoundError:
            return False

    def provenance(self, table: Table, month: str) -> Provenance | None:
        """What made a month; None where it does not exist. Raises as `read_provenance` does."""
        return read_provenance(self.file(table, month))

    def read(self, table: Table, month: str, columns: list[str] | None = None) -> pa.Table:
        """A month of a table, or some columns of it.

        Raises MissingInput where the month does not exist, PermanentFailure where the file has
        another schema version or cannot be read.
        """
        with self._open(table, month) as parquet:
            rows = read_columns(parquet, columns)
            return with_present_names(rows, parquet.metadata, self.file(table, month))

    @contextlib.contextmanager
    def _open(
        self, table: Table, month: str, *, read_ahead: bool = True, other_versions: bool = False
    ) -> Iterator[pq.ParquetFile]:
        """A month's file. other_versions: whether a file of another schema version is accepted too.
        Raises as `read` does.
        """
        file = self.file(table, month)
        with contextlib.ExitStack() as stack:
            try:
                parquet = stack.enter_context(open_parquet(file, pre_buffer=read_ahead))
            except FileNotFoundError:
                raise MissingInput(
                    f"{table.name} of {month} does not exist ({file}): "
                    f"run citeloom run --months {month} --until {table.name}"
                ) from None
            except (OSError, ValueError, pa.ArrowException) as error:
                raise foreign_file(file, error) from error
            version = provenance_in(parquet.metadata, file).schema_version
            if not other_versions:
                _check_version(file, version, table, month)
            with _named_damage(file, table, month):
                yield parquet

    def rows(
        self, table: Table, month: str, columns: list[str] | None = None
    ) -> list[dict[str, Any]]:
        """A month of a table as dictionaries. Raises as `read` does."""
        return list(self.read(table, month, columns).to_pylist(maps_as_pydicts="strict"))

    def iterate(
        self, table: Table, month: str, columns: list[str] | None = None
    ) -> Iterator[dict[str, Any]]:
        """The rows of a month one by one, with one row group in memory. Raises as `read` does."""
        for batch in self.batches(table, month, columns):
            yield from batch.to_pylist(maps_as_pydicts="strict")

    def batches(
        self, table: Table, month: str, columns: list[str] | None = None, rows: int | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a month as Arrow batches of `rows` rows, or of at most one row group. Raises
        as `read` does.
        """
        # Reading ahead keeps all row groups until the last: 500 MB for a file of 400 MB, 120 MB
        # without.
        with self._open(table, month, read_ahead=False) as parquet:
            file, size = self.file(table, month), rows or table.rows_per_group
            for batch in parquet.iter_batches(batch_size=size, columns=columns):
                yield with_present_names(batch, parquet.metadata, file)

    def rows_with(
        self,
        table: Table,
        month: str,
        column: str,
        values: Collection[str],
        columns: list[str],
        passages: Collection[str] | None = None,
    ) -> Iterator[dict[str, Any]]:
        """The rows of `tables_with`, one by one."""
        for matching in self.tables_with(table, month, column, values, columns, passages):
            yield from matching.to_pylist(maps_as_pydicts="strict")

    def tables_with(
        self,
        table: Table,
        month: str,
        column: str,
        values: Collection[str],
        columns: list[str],
        passages: Collection[str] | None = None,
    ) -> Iterator[pa.Table]:
        """The rows of a month whose `column`, a text, is one of `values`, by row group. Raises as
        `read` does.

        Row groups whose statistics exclude every value are not read: passages lie in the order of
        their papers. passages: ids of passages that are all among the rows; only theirs are
        returned. Ids are in no order, so that they alone would exclude no row group.
        """
        key, keys = (column, values) if passages is None else ("passage_id", passages)
        key_values = text_array(keys)
        columns_read = list(dict.fromkeys([key, *columns]))
        with self._open(table, month) as parquet:
            for number in row_groups_with(parquet, column, values):
                # A few columns of one row group: threads took longer to start than to read.
                group = parquet.read_row_group(number, columns=columns_read, use_threads=False)
                matching = group.filter(pc.is_in(group[key], key_values)).select(columns)
                yield with_present_names(matching, parquet.metadata, self.file(table, month))

    def check_rows(self, table: Table, month: str) -> None:
        """Compare a month's rows with the digest that its file records. Raises PermanentFailure
        where they differ, or the file cannot be read. A file of another schema version is not
        compared: the next run replaces it.

        Within `read_cache`, a file on a disk whose bytes are those compared before is not decoded:
        the rows of 9,000 files took 8 s of processor time, their bytes 0.2 s.
        """
        file = self.file(table, month)
        if not isinstance(file, Path):
            self._compare_rows(table, month)
            return
        with _named_damage(file, table, month), file.open("rb") as content:
            content_sha256 = hashlib.file_digest(content, "sha256").hexdigest()
        remember(
            f"compared rows of {file}", content_sha256, lambda: self._compare_rows(table, month)
        )

    def _compare_rows(self, table: Table, month: str) -> str:
        """Decode a month and compare its rows with the digest that its file records, which is
        returned. Raises as `check_rows` does.
        """
        file = self.file(table, month)
        with self._open(table, month, read_ahead=False, other_versions=True) as parquet:
            provenance = provenance_in(parquet.metadata, file)
            if provenance.schema_version != table.version:
                return provenance.rows_sha256
            groups = RowGroups(table)
            for batch in parquet.iter_batches(batch_size=table.rows_per_group):
                for _ in groups.add(batch):
                    pass
            for _ in groups.finish():
                pass
            if provenance.rows_sha256 != groups.sha256:
                raise _damage(file, table, month, "its rows are not those that were written")
            return provenance.rows_sha256

    def check_ledger(self, table: Table, month: str) -> None:
        """Raise PermanentFailure if a stage wrote a month, and the ledger of its run is absent."""
        written = None if table in _IMPORTED else self.provenance(table, month)
        file = self.ledger_file(table.name, month)
        ledger = read_provenance(file)
        if written and (ledger is None or ledger.fingerprint != written.fingerprint):
            raise _damage(
                file, table, month, f"absent, or of another run than {table.name} of {month}"
            )

    def group_sizes(self, table: Table, month: str) -> list[int]:
        """The number of rows of each row group of a month. Raises as `read` does."""
        with self._open(table, month) as parquet:
            groups = range(parquet.num_row_groups)
            return [parquet.metadata.row_group(number).num_rows for number in groups]

    def group(
        self, table: Table, month: str, number: int, columns: list[str] | None = None
    ) -> pa.RecordBatch:
        """One row group of a month, from 0, without the checks of `read`, for a worker process.

        Raises PermanentFailure where it cannot be read.
        """
        file = self.file(table, month)
        with _named_damage(file, table, month), open_parquet(file) as parquet:
            return parquet.read_row_group(number, columns=columns).combine_chunks().to_batches()[0]


# The files of a month are named several times; a path takes 10 µs.
@lru_cache(maxsize=1 << 12)
def _month_file(root: DataPath, folder: str, month: str) -> DataPath:
    return _folder(root, folder) / f"{month}.parquet"


@lru_cache(maxsize=1 << 10)
def _folder(root: DataPath, name: str) -> DataPath:
    return root / name


def _months_in(folder: DataPath) -> list[str]:
    names: list[str] = []
    if isinstance(folder, StorePath):
        names = [file.name for file in folder.glob("*.parquet")]
    elif folder.is_dir():
        # By names alone: a path for each of 424 files takes 5 ms of every search page.
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries]
    return sorted(name.removesuffix(".parquet") for name in names if name.endswith(".parquet"))


def _check_version(file: DataPath, version: int, table: Table, month: str) -> None:
    """Raise PermanentFailure for a file of another version of the table's columns."""
    if version == table.version:
        return
    if table in _IMPORTED:
        raise PermanentFailure(
            f"{file} has schema version {version}, and this citeloom reads {table.version}: "
            f"move {file.parent} away and import the sheets again"
        )
    cost = "embeddings and paid answers are reused where their inputs are unchanged"
    if table == EMBEDDINGS:
        cost = "its vectors are computed again"
    raise PermanentFailure(
        f"{file} has schema version {version}, and this citeloom reads {table.version}: run"
        f" citeloom run --months {month} --until {table.name}, which makes it again from its"
        f" inputs; {cost}"
    )


@contextlib.contextmanager
def _named_damage(file: DataPath, table: Table, month: str) -> Iterator[None]:
    """Name the file whose pages cannot be read, although its footer can."""
    try:
        yield
    except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
        raise _damage(file, table, month, one_line(str(error))) from error


def _damage(file: DataPath, table: Table, month: str, reason: str) -> PermanentFailure:
    # A ledger is in the folder of its stage's name, as a table is.
    way_out = f"run citeloom run --months {month} --select {file.parent.name} --force"
    if table in _IMPORTED:
        way_out = f"move {file.parent} away and import the sheets again"
    return PermanentFailure(f"{file} is damaged ({reason}): {way_out}")


def deletable(root: DataRoot) -> dict[str, str]:
    """What lies in a data root and belongs to nothing of this version: path → what it was."""
    paths = dict(REMOVED_FILES)
    for table, rows in REMOVED_TABLES.items():
        paths |= {f"{folder}{table}": rows for folder in ("", "ledger/", "timings/")}
    return {path: what for path, what in paths.items() if _is_there(root, path)}


def _is_there(root: DataRoot, path: str) -> bool:
    place = root.path / path
    # A folder of an object store is there where a file is below it.
    return place.exists() or any(place.glob("*"))
