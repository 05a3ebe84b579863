"""Months of tables as an export reads them: which there are, their rows, what made them, what they leave out.

The ledger is one table here, though each stage keeps its own file of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from pipeline.arxiv.months import is_month, select_months
from pipeline.errors import MissingInput, PermanentFailure, SettingError
from pipeline.storage.data_root import DataRoot
from pipeline.storage.provenance import Provenance, read_provenance
from pipeline.storage.reading import open_parquet
from pipeline.storage.store import Place
from pipeline.tables import LEDGER, TABLES, Table

# What speaks of papers; the rest is of one's own runs. Vectors are asked for by name: without words there are none.
DEFAULT_TABLES = ("metadata", "papers", "passages", "references", "ledger")


@dataclass(frozen=True, slots=True)
class Month:
    """A month of a table, and what made each of its files."""

    table: Table
    month: str
    made: tuple[Provenance, ...]

    @property
    def rows(self) -> int:
        return sum(provenance.rows for provenance in self.made)

    @property
    def rows_sha256(self) -> str:
        """What tells its rows from others: of one file its digest, of several their digests."""
        return " ".join(provenance.rows_sha256 for provenance in self.made)


def choose_tables(names: str) -> list[Table]:
    """The tables that commas set apart, or all of them, in the order of the data. Raises SettingError for another."""
    chosen = {name.strip() for name in names.split(",") if name.strip()}
    unknown = sorted(chosen - TABLES.keys() - {"all"})
    if unknown or not chosen:
        what = f"{', '.join(unknown)}, which is no table" if unknown else "no table"
        raise SettingError(f"--tables names {what}: give some of {', '.join(TABLES)}, with commas between, or all")
    return [table for name, table in TABLES.items() if name in chosen or "all" in chosen]


def find_months(root: DataRoot, tables: Sequence[Table], selection: str) -> list[Month]:
    """The months of these tables that are there, hold rows, and are selected; by table, oldest first.

    Raises SettingError for a selection that names no month, MissingInput where nothing is found, PermanentFailure for
    a file that is none of ours.
    """
    there = {table.name: _months(root, table) for table in tables}
    known = sorted({month for months in there.values() for month in months})
    wanted = select_months(selection, known) if known else []
    found = [
        Month(table, month, _made(root, table, month))
        for table in tables
        for month in there[table.name]
        if month in wanted
    ]
    # `datasets` 5.2 fails on a Parquet file without rows.
    kept = [month for month in found if month.rows]
    if not kept:
        names = ", ".join(table.name for table in tables)
        raise MissingInput(f"{root.path} has no rows of {names} to export: run citeloom run first")
    return kept


def batches(root: DataRoot, month: Month, columns: list[str]) -> Iterator[pa.RecordBatch]:
    """The rows of a month, a row group or less at a time. Raises as DataRoot.batches does."""
    if month.table != LEDGER:
        yield from root.batches(month.table, month.month, columns)
        return
    for file in _ledger_files(root, month.month):
        try:
            with open_parquet(file, pre_buffer=False) as parquet:  # as DataRoot.batches does
                yield from parquet.iter_batches(batch_size=LEDGER.rows_per_group, columns=columns)
        except (OSError, pa.ArrowInvalid) as error:
            raise PermanentFailure(
                f"{file} is damaged ({error}): run citeloom run --months {month.month} --select {file.parent.name} "
                "--force"
            ) from error


def changed(root: DataRoot, month: Month) -> bool:
    """Whether a month has been written anew since it was found."""
    return _made(root, month.table, month.month) != month.made


def mismatches(root: DataRoot, months: Sequence[Month]) -> list[str]:
    """What is made of other rows than those that are there now, in words: it would not fit what is exported with it."""
    found = []
    for month in months:
        for name, digest in month.made[0].inputs.items() if month.table != LEDGER else ():
            # An input may bear its own table's name: the file of questions is one of `questions`.
            is_table = name in TABLES and name != month.table.name
            above = read_provenance(root.file(TABLES[name], month.month)) if is_table else None
            if above is not None and above.rows_sha256 != digest:
                found.append(
                    f"{month.table.name} of {month.month} was made of other rows of {name} than are there now: "
                    f"run citeloom run --months {month.month}, and export again"
                )
    return found


def losses(root: DataRoot, months: Sequence[str]) -> dict[tuple[str, str], int]:
    """(stage, reason) → how many things the stage left out of these months for it, in the order of the data."""
    counts: Counter[tuple[str, str]] = Counter()
    for month in months:
        for stage, table in TABLES.items():
            # What a stage left out is counted in its table's file; its ledger has the rows.
            made = None if table == LEDGER else read_provenance(root.file(table, month))
            counts.update({(stage, reason): count for reason, count in (made.left_out if made else {}).items()})
    places = list(TABLES)
    return dict(sorted(counts.items(), key=lambda item: (places.index(item[0][0]), -item[1], item[0][1])))


def _months(root: DataRoot, table: Table) -> list[str]:
    if table != LEDGER:
        return [month for month in root.months(table) if is_month(month)]
    return sorted({file.stem for file in (root.path / LEDGER.name).glob("*/*.parquet") if is_month(file.stem)})


def _made(root: DataRoot, table: Table, month: str) -> tuple[Provenance, ...]:
    files = _ledger_files(root, month) if table == LEDGER else [root.file(table, month)]
    return tuple(provenance for file in files if (provenance := read_provenance(file)) is not None)


def _ledger_files(root: DataRoot, month: str) -> list[Place]:
    """The ledgers of a month, in the order of the data."""
    return [file for stage in TABLES if (file := root.ledger_file(stage, month)).exists()]
