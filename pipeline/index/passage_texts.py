"""Texts of passages that were found, from the passages table: the index holds none, they would double it."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from pipeline import tables
from pipeline.errors import PermanentFailure

if TYPE_CHECKING:
    from pyarrow.parquet import FileMetaData

    from pipeline.engine.stage import Workspace
    from pipeline.index.passage_index import Found
    from pipeline.storage.store import DataPath

_log = logging.getLogger(__name__)


def read_texts(workspace: Workspace, found: Iterable[Found]) -> Mapping[str, str]:
    """Passage id to text; a passage that its table lacks is left out, and counted in a warning.

    Passages lie in order of papers, so row groups without these papers are not read. Raises MissingInput where a
    month's table is not there, PermanentFailure where it cannot be read.
    """
    points = {point.passage_id: point for point in found}
    by_month: dict[str, list[Found]] = defaultdict(list)
    for point in points.values():
        by_month[point.payload["month"]].append(point)
    texts: dict[str, str] = {}
    for month in sorted(by_month):
        workspace.root.read(tables.PASSAGES, month, columns=[])
        texts.update(_texts_of(workspace.root.file(tables.PASSAGES, month), month, by_month[month]))
    _warn_of([point for point in points.values() if point.passage_id not in texts])
    return texts


def _warn_of(lost: Sequence[Found]) -> None:
    if lost:
        _log.warning(
            "%d passages found are not in the passages table of %s, hence left out: run citeloom run on these months",
            len(lost),
            ", ".join(sorted({point.payload["month"] for point in lost})),
        )


def _texts_of(file: DataPath, month: str, points: Sequence[Found]) -> dict[str, str]:
    import pyarrow as pa

    from pipeline.storage.reading import open_parquet

    wanted = {point.passage_id for point in points}
    try:
        # Not read_table with filters: pyarrow's data sets import pandas, a third of a second of a search.
        with open_parquet(file) as parquet:
            groups = _groups_with(parquet.metadata, {point.payload["arxiv_id"] for point in points})
            rows = parquet.read_row_groups(groups, columns=["passage_id", "text"])
    except (OSError, ValueError, pa.ArrowException) as error:
        raise PermanentFailure(
            f"{file} cannot be read ({' '.join(str(error).split())}): make it again by "
            f"citeloom run --months {month} --select {tables.PASSAGES.name} --force"
        ) from error
    return {
        passage_id: rows["text"][place].as_py()
        for place, passage_id in enumerate(rows["passage_id"].to_pylist())
        if passage_id in wanted
    }


def _groups_with(metadata: FileMetaData, papers: Collection[str]) -> list[int]:
    """The row groups that may hold one of the papers, by their statistics; all that have none."""
    column = metadata.schema.names.index("arxiv_id")

    def may_hold(group: int) -> bool:
        statistics = metadata.row_group(group).column(column).statistics
        if statistics is None or not statistics.has_min_max:
            return True
        return any(statistics.min <= paper <= statistics.max for paper in papers)

    return [group for group in range(metadata.num_row_groups) if may_hold(group)]
