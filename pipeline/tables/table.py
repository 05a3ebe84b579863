"""What a table is: its name, its columns with their descriptions, and the version of that contract."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

# 2,000 passages of 1.5 KB are 3 MB: small enough to hold, large enough that Parquet's per-group cost vanishes.
ROWS_PER_GROUP = 2_000


@dataclass(frozen=True, slots=True)
class Table:
    """A table's name, what one row of it is, its columns, and the version of that contract.

    rows_per_group: how many rows are held and written at once.
    """

    name: str
    row: str
    schema: pa.Schema
    version: int = 1
    rows_per_group: int = ROWS_PER_GROUP

    def describe_columns(self) -> list[tuple[str, str, str]]:
        """(column, Arrow type, description) of every column, in order."""
        return [(column.name, str(column.type), _description(column)) for column in self.schema]


def _description(column: pa.Field) -> str:
    return str((column.metadata or {}).get(b"description", b"").decode())


def column(name: str, kind: pa.DataType, description: str) -> pa.Field:
    return pa.field(name, kind, metadata={"description": description})


def schema(*columns: tuple[str, pa.DataType, str]) -> pa.Schema:
    return pa.schema([column(*each) for each in columns])


TEXT, COUNT, FLAG = pa.string(), pa.int64(), pa.bool_()
TEXTS = pa.list_(TEXT)
