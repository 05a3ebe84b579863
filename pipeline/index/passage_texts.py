"""Texts of passages that were found, from the passages table: the index holds none, they would double it."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from pipeline import tables
from pipeline.errors import PermanentFailure

if TYPE_CHECKING:
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

    from pipeline.storage.reading import read_table

    papers = sorted({point.payload["arxiv_id"] for point in points})
    wanted = [("arxiv_id", "in", papers), ("passage_id", "in", [point.passage_id for point in points])]
    try:
        rows = read_table(file, columns=["passage_id", "text"], filters=wanted).to_pylist()
    except (OSError, ValueError, pa.ArrowException) as error:
        raise PermanentFailure(
            f"{file} cannot be read ({' '.join(str(error).split())}): make it again by "
            f"citeloom run --months {month} --select {tables.PASSAGES.name} --force"
        ) from error
    return {row["passage_id"]: row["text"] for row in rows}
