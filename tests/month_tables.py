"""Months of tables, written as a stage leaves them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipeline.storage.data_root import DataRoot
from pipeline.storage.provenance import Provenance
from pipeline.storage.writing import MonthWriter
from pipeline.tables import Table


def write_table(
    root: DataRoot,
    table: Table,
    month: str,
    rows: Iterable[Mapping[str, Any]],
    *,
    file: Path | None = None,
    **about: Any,
) -> None:
    """Put a month of a table in place, or in another file; `about` are fields of its provenance."""
    made = Provenance(table.name, month, table.version, 1, "0", "made by a test", {}, {})
    with MonthWriter(table, file or root.file(table, month)) as writer:
        for row in rows:
            writer.add(row)
        writer.commit(replace(made, **about))
