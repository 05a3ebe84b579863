"""`Table`: a table's name, what a row is, its columns with their descriptions, and the version of that contract."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

# 2,000 passages of 1.5 KB are 3 MB: small enough for memory, large enough that Parquet's cost per group vanishes.
ROWS_PER_GROUP = 2_000

TEXT, COUNT, FLAG = pa.string(), pa.int64(), pa.bool_()
TEXTS = pa.list_(TEXT)

Column = tuple[str, pa.DataType, str]
"""Name, type and description."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table. row: what one row of it is. rows_per_group: how many rows are held in memory and written at once."""

    name: str
    row: str
    schema: pa.Schema
    version: int = 1
    rows_per_group: int = ROWS_PER_GROUP

    def describe_columns(self) -> list[tuple[str, str, str]]:
        """(name, Arrow type, description) of every column, in order."""
        return [
            (column.name, str(column.type), (column.metadata or {}).get(b"description", b"").decode())
            for column in self.schema
        ]


def schema(*columns: Column) -> pa.Schema:
    return pa.schema([pa.field(name, kind, metadata={"description": text}) for name, kind, text in columns])


def llm_usage(calls: str) -> tuple[Column, ...]:
    """The columns of what a row cost; calls: description of the number of calls."""
    return (
        ("calls", COUNT, calls),
        ("prompt_tokens", COUNT, "tokens read"),
        ("completion_tokens", COUNT, "tokens written"),
    )
