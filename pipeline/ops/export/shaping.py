"""What of a table's rows goes into an export: columns that stay, words that are taken out, types that tools know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from pipeline.ops.export.rights import Right, Texts, is_open, right_of
from pipeline.tables import Table

LICENCE = pa.field(
    "license", pa.string(), metadata={"description": "address of the paper's licence at arXiv; null where unknown"}
)


@dataclass(frozen=True)
class Shape:
    """A table as an export with these texts has it."""

    table: Table
    texts: Texts

    @cached_property
    def held(self) -> tuple[str, ...]:
        """Columns that are left out."""
        return tuple(column.name for column in self.table.schema if self._right(column) not in self._kept_rights)

    @cached_property
    def of_papers(self) -> tuple[str, ...]:
        """Columns of it that hold words of the row's paper."""
        kept = (column for column in self.table.schema if column.name not in self.held)
        return tuple(column.name for column in kept if self._right(column) is Right.PAPER)

    @cached_property
    def schema(self) -> pa.Schema:
        """Columns of the exported table; those with words of papers are followed by the licence of the row's paper."""
        columns = [_known_type(column) for column in self.table.schema if column.name not in self.held]
        return pa.schema([*columns, LICENCE] if self.of_papers else columns)

    @property
    def columns(self) -> list[str]:
        """Columns to read of the table."""
        return [column.name for column in self.table.schema if column.name not in self.held]

    @property
    def _kept_rights(self) -> tuple[Right, ...]:
        return {
            Texts.NONE: (Right.FREE,),
            Texts.OPEN: (Right.FREE, Right.PAPER),
            Texts.ALL: (Right.FREE, Right.PAPER, Right.HELD),
        }[self.texts]

    def _right(self, column: pa.Field) -> Right:
        return right_of(self.table, column)

    def shaped(self, batch: pa.RecordBatch, licences: Mapping[str, str]) -> pa.RecordBatch:
        """The rows of a batch that has `columns`. Where the texts are open, words of other papers become null.

        licences: arXiv id → address of its licence.
        """
        columns = {
            name: column.cast(self.schema.field(name).type)
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        }
        if self.of_papers:
            named = [licences.get(arxiv_id) for arxiv_id in batch.column("arxiv_id").to_pylist()]
            columns[LICENCE.name] = pa.array(named, LICENCE.type)
            if self.texts is Texts.OPEN:
                # `take` gives null at a null place, whatever the column's type.
                places = pa.array([place if is_open(name) else None for place, name in enumerate(named)], pa.int32())
                columns |= {name: columns[name].take(places) for name in self.of_papers}
        return pa.RecordBatch.from_arrays([columns[name] for name in self.schema.names], schema=self.schema)


def _known_type(column: pa.Field) -> pa.Field:
    """The column in types that `datasets` reads: 5.2 knows no map, and reads its rows as a list of key and value."""
    if not pa.types.is_map(column.type):
        return column
    pair = pa.struct([("key", column.type.key_type), ("value", column.type.item_type)])
    return column.with_type(pa.list_(pair))
