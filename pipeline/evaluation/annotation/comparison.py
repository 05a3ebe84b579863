"""People's marks and verdicts beside a judge's: what both kinds of study share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from pipeline.evaluation.annotation.study import SheetFormat
from pipeline.evaluation.statistics import Estimate, Level, alpha, clear_winner
from pipeline.storage.data_root import DataRoot
from pipeline.storage.writing import Row
from pipeline.tables.writers import full_name, writer_name

Key = TypeVar("Key")
Value = TypeVar("Value")


def read_current(
    root: DataRoot,
    form: SheetFormat,
    month: str,
    digests: Mapping[tuple[str, str], str],
    study: str | None,
) -> tuple[list[Row], int]:
    """(Rows by people on texts that have not changed since, with their writers' names as `system`;
    count of others) of a month, of one study or of all.

    digests: (task or question, writer) → SHA-256 of its text. Raises as `DataRoot.iterate` does.
    """
    if not root.file(form.table, month).exists():
        return [], 0
    writers = {name for _, name in digests}
    columns = [name for name in form.table.schema.names if name not in ("label", "number")]
    current: list[Row] = []
    outdated = 0
    for row in root.iterate(form.table, month, columns):
        if study not in (None, row["study"]):
            continue
        system = full_name(writer_name(row), writers)
        if digests.get((row[form.item], system)) == row["text_sha256"]:
            current.append({**row, "system": system})
        else:
            outdated += 1
    return current, outdated


def group(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """Key → its values, both in their order."""
    groups: dict[Key, list[Value]] = defaultdict(list)
    for key, value in pairs:
        groups[key].append(value)
    return groups


def agreement_of(
    values: Iterable[tuple[tuple[str, ...], Any]], level: Level, item: int = 0
) -> Estimate:
    """Krippendorff's alpha of those who gave values to the same units.

    values: (unit, value). item: the place in a unit of its task or question, over which intervals
    are.
    """
    units = group(values)
    return alpha(list(units.values()), [unit[item] for unit in units], level)


def winners(votes: Mapping[Key, Iterable[Value]]) -> dict[Key, Value]:
    """Key → what most voted for; a key of which two have as many has none."""
    clear = {key: clear_winner(choices) for key, choices in votes.items()}
    return {key: winner for key, winner in clear.items() if winner is not None}


def names_of(rows: Sequence[Row], column: str) -> tuple[str, ...]:
    """The values of a column, each once, sorted."""
    return tuple(sorted({row[column] for row in rows}))
