"""Writers: a system and the model that it calls, as the columns `system` and `model`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc


class Writer(NamedTuple):
    """The writer of a section or an answer.

    model: None for a system that calls no model, and for texts that were written elsewhere.
    """

    system: str
    model: str | None = None

    @property
    def name(self) -> str:
        """`system@model`, or the system alone where there is no model."""
        return self.system if self.model is None else f"{self.system}@{self.model}"

    @property
    def columns(self) -> dict[str, str | None]:
        """The writer as the columns `system` and `model`."""
        return self._asdict()


def parse_writer(name: str) -> Writer:
    """The writer of a name. A model's name may hold further @ signs, a system's holds none."""
    system, at, model = name.partition("@")
    return Writer(system, model if at else None)


def writer_of(row: Mapping[str, Any]) -> Writer:
    """The writer of a row with the columns `system` and `model`."""
    return Writer(row["system"], row["model"])


def writer_name(row: Mapping[str, Any]) -> str:
    """The name of the writer of a row with the columns `system` and `model`."""
    return writer_of(row).name


def short_names(names: Iterable[str]) -> dict[str, str]:
    """Name of a writer → the name to show: the system alone where it has one model."""
    distinct = sorted(set(names))
    models = Counter(parse_writer(name).system for name in distinct)
    systems = {name: parse_writer(name).system for name in distinct}
    return {name: system if models[system] == 1 else name for name, system in systems.items()}


def full_name(name: str, names: Iterable[str]) -> str:
    """The name that an abbreviation means: itself, or that of the only writer with this system.

    A name that means none of them, or several, is given back as it is.
    """
    known = set(names)
    same = [other for other in known if parse_writer(other).system == name]
    return same[0] if name not in known and len(same) == 1 else name


def by_system(names: Iterable[str], systems: Iterable[str]) -> list[str]:
    """The names of writers with these systems, in the order of the systems, then by name."""
    ordered = sorted(names)
    return [name for system in systems for name in ordered if parse_writer(name).system == system]


def with_writer_names(table: pa.Table) -> pa.Table:
    """The table with writers' names in its column `system`; its column `model` stays."""
    at_model = pc.if_else(
        pc.is_null(table["model"]), "", pc.binary_join_element_wise("@", table["model"], "")
    )
    names = pc.binary_join_element_wise(table["system"], pc.fill_null(at_model, ""), "")
    return table.set_column(table.column_names.index("system"), "system", names)


def with_display_name(row: Mapping[str, Any], display_names: Mapping[str, str]) -> dict[str, Any]:
    """The row with its writer's name in its column `system`.

    display_names: writer's name → its short name, as `short_names` gives it.
    """
    name = writer_name(row)
    return {**row, "system": display_names.get(name, name)}
