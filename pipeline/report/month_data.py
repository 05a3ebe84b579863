"""What a report needs of both related work and answers: rows of a month, and what writers wrote and
what it cost.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.engine.parts import statistics_name
from pipeline.llm.messages import Prices
from pipeline.llm.models import is_small_model
from pipeline.report.costs import Cost
from pipeline.storage.data_root import DataRoot
from pipeline.storage.provenance import read_provenance
from pipeline.tables import Table
from pipeline.tables.writers import parse_writer, short_names, with_writer_names

Row = dict[str, Any]


@dataclass
class MonthData:
    """What writers wrote in one or several months. systems_known: those of citeloom; others were
    imported.
    """

    systems_known: ClassVar[Collection[str]] = ()
    prices: Mapping[str, Prices] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    """Name of a writer → its name in the report, which is the `system` of everything below."""
    months: list[str] = field(default_factory=list)
    written: dict[str, Cost] = field(default_factory=dict)
    """System → what its sections or answers cost."""

    def costs(self) -> Iterator[Cost]:
        """What was written, and what was paid beside it."""
        yield from self.written.values()

    @property
    def small_model(self) -> str:
        """The embedded model's name where it wrote or judged, else ''."""
        return min(
            (model for cost in self.costs() for model in cost.models if is_small_model(model)),
            default="",
        )

    def model_of(self, system: str) -> str:
        """The model, or models, that a system wrote with; `elsewhere` for imported texts."""
        known = parse_writer(system).system in self.systems_known
        return ", ".join(sorted(self.written[system].models)) or (
            "no model" if known else "elsewhere"
        )

    def add_written(self, table: pa.Table) -> None:
        """Add a month's rows with the columns `system` and `model`, systems by their names in the
        report.
        """
        for system in sorted(set(table["system"].to_pylist())):
            mine = table.filter(pc.equal(table["system"], system))
            self.written.setdefault(system, Cost()).add(mine, "model")

    def part_of(self, table: Table, system: str) -> str:
        """The name under which the runs of a table note what a system took."""
        writers = {shown: name for name, shown in self.names.items()}
        return statistics_name(table.name, writers.get(system, system))


def preferred_first(judged: Collection[str], preferred: Sequence[str]) -> list[str]:
    """Models that judged, the preferred ones first."""
    return [judge for judge in preferred if judge in judged] + sorted(
        set(judged).difference(preferred)
    )


def writer_names(root: DataRoot, months: Iterable[str], *written: Table) -> dict[str, str]:
    """Name of a writer → its name in a report over these months of tables. Raises as
    `DataRoot.read` does.
    """
    names: set[str] = set()
    for month in months:
        for table in written:
            rows = with_writer_names(read_or_empty(root, table, month, ["system", "model"]))
            names.update(rows["system"].to_pylist())
    return short_names(names)


def read_or_empty(
    root: DataRoot, table: Table, month: str, columns: list[str] | None = None
) -> pa.Table:
    """A month of a table; no rows where it is missing."""
    if read_provenance(root.file(table, month)) is None:
        return table.schema.empty_table().select(columns or table.schema.names)
    return root.read(table, month, columns)


def rows_by(
    root: DataRoot,
    month: str,
    table: Table,
    key: str,
    ids: Collection[str],
    columns: list[str] | None = None,
) -> Mapping[str, list[Row]]:
    """The rows of some tasks or questions by id, in the table's order; [] for every other id and a
    missing table.

    key: the column with the id. Raises as `DataRoot.read` does.
    """
    rows: dict[str, list[Row]] = defaultdict(list)
    if read_provenance(root.file(table, month)) is not None:
        for row in root.rows_with(table, month, key, ids, columns or table.schema.names):
            rows[row[key]].append(row)
    return rows
