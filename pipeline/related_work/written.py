"""What all systems wrote in a month, from the tables of each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pipeline import tables
from pipeline.engine.stage import Job
from pipeline.storage.data_root import DataRoot


def written(root: DataRoot, month: str, columns: list[str] | None = None) -> Iterator[dict[str, Any]]:
    """The rows of every system's table of a month that is there, system by system in order of name.

    Raises as `DataRoot.iterate` does for a file that is damaged or of another version.
    """
    for _, table in sorted(tables.SUMMARIES.items()):
        if root.file(table, month).exists():
            yield from root.iterate(table, month, columns)


def written_before(job: Job, columns: list[str] | None = None) -> Iterator[dict[str, Any]]:
    """The same rows as a stage below the systems' reads them, also where an estimate only rehearses it."""
    for _, table in sorted(tables.SUMMARIES.items()):
        yield from job.iterate(table, columns)
