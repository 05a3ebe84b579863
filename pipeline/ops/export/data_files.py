"""The data files of an export: months of tables with exportable columns, and a manifest.

The ledger is one table here, although each stage writes its own file of it.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline import __version__
from pipeline.arxiv.months import is_month, select_months
from pipeline.errors import MissingInput, PermanentFailure, SettingError, TransientFailure
from pipeline.ops.export.rights import Right, Texts, is_open, right_of
from pipeline.stages import STAGES
from pipeline.storage.data_root import DataRoot
from pipeline.storage.provenance import Provenance, read_provenance
from pipeline.storage.reading import open_parquet
from pipeline.storage.store import DataPath
from pipeline.storage.writing import move_into_place, write_whole
from pipeline.tables import LEDGER, TABLES, Table

MANIFEST = "citeloom-export.json"
"""Lists the data files of an export; other files in a folder are not ours to replace."""
_LICENCE = pa.field(
    "license",
    pa.string(),
    metadata={"description": "address of the paper's licence at arXiv; null where unknown"},
)
_RIGHTS_EXPORTED = {
    Texts.NONE: (Right.FREE,),
    Texts.OPEN: (Right.FREE, Right.PAPER),
    Texts.ALL: (Right.FREE, Right.PAPER, Right.RESTRICTED),
}


@dataclass(frozen=True, slots=True)
class DataFile:
    """A month of a table, with the provenance of each of its files in the data root.

    bytes, sha256: of the file in the export, once it is written.
    """

    table: Table
    month: str
    provenances: tuple[Provenance, ...]
    bytes: int = 0
    sha256: str = ""

    @property
    def rows(self) -> int:
        return sum(provenance.rows for provenance in self.provenances)

    @property
    def path(self) -> str:
        """Path below the export's folder."""
        return f"{self.table.name}/{self.month}.parquet"


@dataclass(frozen=True)
class ExportedTable:
    """A table as an export with these texts has it."""

    table: Table
    texts: Texts

    @cached_property
    def _columns(self) -> list[pa.Field]:
        allowed = _RIGHTS_EXPORTED[self.texts]
        return [column for column in self.table.schema if right_of(self.table, column) in allowed]

    @property
    def columns(self) -> list[str]:
        """Names of the columns that are exported."""
        return [column.name for column in self._columns]

    @property
    def columns_left_out(self) -> list[str]:
        """Names of the other columns."""
        return [name for name in self.table.schema.names if name not in self.columns]

    @cached_property
    def paper_columns(self) -> list[str]:
        """Names of the exported columns that hold text of the row's paper."""
        return [
            column.name for column in self._columns if right_of(self.table, column) is Right.PAPER
        ]

    @cached_property
    def schema(self) -> pa.Schema:
        """Schema of the exported table, with the paper's licence where it has text of papers."""
        columns = [_without_map(column) for column in self._columns]
        return pa.schema([*columns, _LICENCE] if self.paper_columns else columns)

    def convert(self, batch: pa.RecordBatch, licences: Mapping[str, str]) -> pa.RecordBatch:
        """A batch of `columns` in the exported schema. With Texts.OPEN the text of papers that are
        not open is null.

        licences: arXiv id → address of its licence.
        """
        columns = {
            name: column.cast(self.schema.field(name).type)
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        }
        if self.paper_columns:
            licence_of_row = [
                licences.get(arxiv_id) for arxiv_id in batch.column("arxiv_id").to_pylist()
            ]
            columns[_LICENCE.name] = pa.array(licence_of_row, _LICENCE.type)
            if self.texts is Texts.OPEN:
                # `take` with a null index gives null, whatever the column's type.
                rows = [
                    row if is_open(licence) else None for row, licence in enumerate(licence_of_row)
                ]
                indices = pa.array(rows, pa.int32())
                columns |= {name: columns[name].take(indices) for name in self.paper_columns}
        return pa.RecordBatch.from_arrays(
            [columns[name] for name in self.schema.names], schema=self.schema
        )


def _without_map(column: pa.Field) -> pa.Field:
    """A map column as a list of key and value, which is how `datasets` 5.2 can read it."""
    if not pa.types.is_map(column.type):
        return column
    pair = pa.struct([("key", column.type.key_type), ("value", column.type.item_type)])
    return column.with_type(pa.list_(pair))


def choose_tables(names: str) -> list[Table]:
    """The tables named in a comma-separated list, or all of them, in pipeline order. Raises
    SettingError for others.
    """
    selection = {name.strip() for name in names.split(",") if name.strip()}
    unknown = sorted(selection - TABLES.keys() - {"all"})
    if unknown or not selection:
        what = f"{', '.join(unknown)}, which is not a table" if unknown else "no table"
        raise SettingError(
            f"--tables names {what}: give some of {', '.join(TABLES)}, separated by commas, or all"
        )
    return [table for name, table in TABLES.items() if name in selection or "all" in selection]


def find_months(root: DataRoot, tables: Sequence[Table], selection: str) -> list[DataFile]:
    """The selected months of these tables that have rows; by table, oldest first.

    Raises SettingError for a selection that matches no month, MissingInput where no month has rows,
    PermanentFailure for a file that is not a table of citeloom's.
    """
    available = {table.name: _months_of(root, table) for table in tables}
    months_available = sorted({month for months in available.values() for month in months})
    selected = select_months(selection, months_available) if months_available else []
    months = [
        DataFile(table, month, _provenances(root, table, month))
        for table in tables
        for month in available[table.name]
        if month in selected
    ]
    # `datasets` 5.2 fails on a Parquet file without rows.
    with_rows = [month for month in months if month.rows]
    if not with_rows:
        names = ", ".join(table.name for table in tables)
        raise MissingInput(f"{root.path} has no rows of {names} to export: run citeloom run first")
    return with_rows


def write_month(
    root: DataRoot, month: DataFile, table: ExportedTable, licences: Mapping[str, str], folder: Path
) -> DataFile:
    """Write a month of a table into an export's folder, one row group in memory at a time.

    Raises TransientFailure where the month is rewritten meanwhile, so that its rows would be of two
    versions.
    """
    file = folder / month.path
    file.parent.mkdir(parents=True, exist_ok=True)
    staged = file.with_suffix(".tmp")
    # Dictionaries make columns of text smaller; floats rarely repeat, and a dictionary of them
    # costs time.
    texts = [column.name for column in table.schema if pa.types.is_string(column.type)]
    with pq.ParquetWriter(staged, table.schema, compression="zstd", use_dictionary=texts) as writer:
        for batch in _batches(root, month, table.columns):
            if batch.num_rows:  # `datasets` fails on a row group without rows
                writer.write_batch(table.convert(batch, licences))
    if _provenances(root, month.table, month.month) != month.provenances:
        raise TransientFailure(
            f"{month.table.name} of {month.month} changed while it was exported: run the same"
            " command again"
        )
    move_into_place(staged, file)
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return replace(month, bytes=file.stat().st_size, sha256=digest)


def write_manifest(files: Sequence[DataFile], texts: str, folder: Path) -> None:
    """Write the list of the export's files, with the digest of the rows that each was made from."""
    manifest = {
        "made_by": f"citeloom {__version__}",
        "texts": texts,
        "files": {
            file.path: {
                "rows": file.rows,
                "sha256": file.sha256,
                "source_rows_sha256": " ".join(
                    provenance.rows_sha256 for provenance in file.provenances
                ),
            }
            for file in files
        },
    }
    write_whole(folder / MANIFEST, (json.dumps(manifest, indent=1, sort_keys=True) + "\n").encode())


def find_mismatches(root: DataRoot, months: Sequence[DataFile]) -> list[str]:
    """A message for each month that was made from rows of a table that changed since."""
    upstream = {stage.name: stage.upstream for stage in STAGES if stage.parts is None}
    messages = []
    for month in months:
        for table in upstream.get(month.table.name, ()):
            now = root.provenance(table, month.month)
            digest = month.provenances[0].inputs.get(table.name)
            if now is not None and digest is not None and now.rows_sha256 != digest:
                messages.append(
                    f"{month.table.name} of {month.month} was made of other rows of"
                    f" {table.name} than are there now: run citeloom run --months {month.month},"
                    " and export again"
                )
    return messages


def count_left_out(root: DataRoot, months: Sequence[str]) -> dict[tuple[str, str], int]:
    """(stage, reason) → how many things the stages left out of these months, in pipeline order."""
    counts: Counter[tuple[str, str]] = Counter()
    for month in months:
        for stage, table in TABLES.items():
            provenance = None if table == LEDGER else root.provenance(table, month)
            if provenance is not None:
                counts.update(
                    {(stage, reason): count for reason, count in provenance.left_out.items()}
                )
    order = list(TABLES)
    return dict(
        sorted(counts.items(), key=lambda item: (order.index(item[0][0]), -item[1], item[0][1]))
    )


def _months_of(root: DataRoot, table: Table) -> list[str]:
    if table != LEDGER:
        return [month for month in root.months(table) if is_month(month)]
    return sorted(
        {file.stem for file in (root.path / LEDGER.name).glob("*/*.parquet") if is_month(file.stem)}
    )


def _provenances(root: DataRoot, table: Table, month: str) -> tuple[Provenance, ...]:
    files = _ledger_files(root, month) if table == LEDGER else [root.file(table, month)]
    provenances = map(read_provenance, files)
    return tuple(provenance for provenance in provenances if provenance is not None)


def _ledger_files(root: DataRoot, month: str) -> list[DataPath]:
    """The ledgers of a month, in pipeline order."""
    files = [root.ledger_file(stage, month) for stage in TABLES]
    return [file for file in files if file.exists()]


def _batches(root: DataRoot, month: DataFile, columns: list[str]) -> Iterator[pa.RecordBatch]:
    """The rows of a month, at most a row group at a time. Raises as DataRoot.batches does."""
    if month.table != LEDGER:
        yield from root.batches(month.table, month.month, columns)
        return
    for file in _ledger_files(root, month.month):
        try:
            with open_parquet(file, pre_buffer=False) as parquet:  # as DataRoot.batches does
                yield from parquet.iter_batches(batch_size=LEDGER.rows_per_group, columns=columns)
        except (OSError, pa.ArrowInvalid) as error:
            raise PermanentFailure(
                f"{file} is damaged ({error}): run citeloom run --months {month.month} --select"
                f" {file.parent.name} --force"
            ) from error
