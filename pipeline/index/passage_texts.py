"""Read the texts of hits from the passages table. The index holds no texts, which would double its size."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from pipeline import tables

if TYPE_CHECKING:
    from pipeline.engine.stage import Workspace
    from pipeline.index.passage_index import ScoredPassage

_log = logging.getLogger(__name__)


def read_texts(workspace: Workspace, hits: Iterable[ScoredPassage]) -> Mapping[str, str]:
    """Passage id to text. Passages that their table lacks are left out and counted in a warning.

    Raises MissingInput if a month's table does not exist, PermanentFailure if it cannot be read.
    """
    points = {point.passage_id: point for point in hits}
    by_month: dict[str, list[ScoredPassage]] = defaultdict(list)
    for point in points.values():
        by_month[point.payload["month"]].append(point)
    texts: dict[str, str] = {}
    for month in sorted(by_month):
        papers = {point.payload["arxiv_id"] for point in by_month[month]}
        ids = {point.passage_id for point in by_month[month]}
        rows = workspace.root.rows_with(tables.PASSAGES, month, "arxiv_id", papers, ["passage_id", "text"], ids)
        texts.update((row["passage_id"], row["text"]) for row in rows)
    _warn_about([point for point in points.values() if point.passage_id not in texts])
    return texts


def _warn_about(lost: Sequence[ScoredPassage]) -> None:
    if lost:
        _log.warning(
            "%d hits are not in the passages table of %s and are left out: run citeloom run on these months",
            len(lost),
            ", ".join(sorted({point.payload["month"] for point in lost})),
        )
