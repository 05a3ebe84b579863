"""Texts of passages that were found, from the passages table: the index holds none, they would double it."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from pipeline import tables

if TYPE_CHECKING:
    from pipeline.engine.stage import Workspace
    from pipeline.index.passage_index import Found

_log = logging.getLogger(__name__)


def read_texts(workspace: Workspace, found: Iterable[Found]) -> Mapping[str, str]:
    """Passage id to text; a passage that its table lacks is left out, and counted in a warning.

    Raises MissingInput where a month's table is not there, PermanentFailure where it cannot be read.
    """
    points = {point.passage_id: point for point in found}
    by_month: dict[str, list[Found]] = defaultdict(list)
    for point in points.values():
        by_month[point.payload["month"]].append(point)
    texts: dict[str, str] = {}
    for month in sorted(by_month):
        papers = {point.payload["arxiv_id"] for point in by_month[month]}
        for row in workspace.root.rows_with(tables.PASSAGES, month, "arxiv_id", papers, ["passage_id", "text"]):
            if row["passage_id"] in points:
                texts[row["passage_id"]] = row["text"]
    _warn_of([point for point in points.values() if point.passage_id not in texts])
    return texts


def _warn_of(lost: Sequence[Found]) -> None:
    if lost:
        _log.warning(
            "%d passages found are not in the passages table of %s, hence left out: run citeloom run on these months",
            len(lost),
            ", ".join(sorted({point.payload["month"] for point in lost})),
        )
