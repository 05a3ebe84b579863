"""Hybrid search: the question's vectors against the index, and the text of what it found from the passages table.

Not here: how the index ranks (`edge`, `server`).
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline import tables
from pipeline.embedding.choice import make_embedder
from pipeline.errors import MissingInput, PermanentFailure, SettingError
from pipeline.index.opening import open_index
from pipeline.index.passage_index import Found, Layout, PassageIndex, Restriction, collection_differs
from pipeline.months import parse_month

if TYPE_CHECKING:
    from pipeline.embedding.embedder import Embedder
    from pipeline.stages import Workspace

_log = logging.getLogger(__name__)

# A search reads whole row groups of passages for its texts; nobody reads further than this.
MOST = 1_000


@dataclass(frozen=True, slots=True)
class Hit:
    """One passage found. score is that of rank fusion: it orders one search's hits and compares with nothing else."""

    score: float
    arxiv_id: str
    title: str
    section_path: tuple[str, ...]
    anchor: str
    kind: str
    month: str
    text: str
    passage_id: str
    url: str


def search(
    workspace: Workspace,
    query: str,
    *,
    limit: int = 10,
    category: str | None = None,
    first_month: str | None = None,
    last_month: str | None = None,
    kinds: Sequence[str] = (),
) -> list[Hit]:
    """The passages that answer a query best, best first.

    category: one category (cs.CL) or archive (cs). Months as YYYY-MM, both included. Raises SettingError for an
    argument that is wrong, MissingInput where nothing is indexed, PermanentFailure where the index was made by another
    model, TransientFailure where it does not answer or another process holds it. Never makes a collection.
    """
    _check(query, limit, first_month, last_month)
    index, embedder = open_index(workspace), make_embedder(workspace.settings)
    _check_index(index, embedder, workspace)
    restriction = Restriction(embedder.name, category, first_month, last_month, tuple(kinds))
    vectors = embedder.encode_queries([query])[0]
    found = index.search(
        vectors.dense.tolist(),
        vectors.sparse_ids.tolist(),
        vectors.sparse_weights.tolist(),
        limit=limit,
        restriction=restriction,
    )
    return _hits(workspace, found)


def _check(query: str, limit: int, first_month: str | None, last_month: str | None) -> None:
    if not query.strip():
        raise SettingError("the query is empty: give some words to search for")
    if not 1 <= limit <= MOST:
        raise SettingError(f"the limit {limit} is not between 1 and {MOST}")
    months = [parse_month(month) for month in (first_month, last_month) if month is not None]
    if months != sorted(months):
        raise SettingError(f"the months run backwards, from {first_month} to {last_month}")


def _check_index(index: PassageIndex, embedder: Embedder, workspace: Workspace) -> None:
    name = workspace.settings.qdrant_collection
    layout, models = index.layout(), index.models()
    if layout is None or not models:
        state = "is not there" if layout is None else "is empty"
        raise MissingInput(
            f"the collection {name} {state}: run citeloom run --months all --until {tables.INDEX_RECEIPTS.name}"
        )
    if embedder.name not in models:
        raise PermanentFailure(
            f"the collection {name} holds vectors of {', '.join(models)}, and CITELOOM_EMBEDDER is {embedder.name}: "
            f"set the embedder back, or CITELOOM_QDRANT_COLLECTION to another name and run citeloom run --months all"
        )
    wanted = Layout(embedder.dimensions, embedder.sparse_idf)
    if layout != wanted:
        raise PermanentFailure(collection_differs(name, layout, wanted))


def _hits(workspace: Workspace, found: list[Found]) -> list[Hit]:
    texts = _texts(workspace, found)
    hits = [_hit(point, texts[point.passage_id]) for point in found if point.passage_id in texts]
    if len(hits) < len(found):
        lost = [point for point in found if point.passage_id not in texts]
        _log.warning(
            "%d passages found are not in the passages table of %s, hence left out: run citeloom run on these months",
            len(lost),
            ", ".join(sorted({point.payload["month"] for point in lost})),
        )
    return hits


def _hit(point: Found, text: str) -> Hit:
    payload = point.payload
    return Hit(
        score=point.score,
        arxiv_id=payload["arxiv_id"],
        title=payload["title"],
        section_path=tuple(payload["section_path"]),
        anchor=payload["anchor"],
        kind=payload["kind"],
        month=payload["month"],
        text=text,
        passage_id=point.passage_id,
        url=f"https://arxiv.org/abs/{payload['arxiv_id']}",
    )


def _texts(workspace: Workspace, found: list[Found]) -> dict[str, str]:
    """Passage id to text. Passages lie in order of papers, so row groups without these papers are not read."""
    import pyarrow.parquet as pq

    by_month: dict[str, list[Found]] = defaultdict(list)
    for point in found:
        by_month[point.payload["month"]].append(point)
    texts: dict[str, str] = {}
    for month, points in by_month.items():
        workspace.root.read(tables.PASSAGES, month, columns=[])
        file = workspace.root.file(tables.PASSAGES, month)
        papers = sorted({point.payload["arxiv_id"] for point in points})
        wanted = [("arxiv_id", "in", papers), ("passage_id", "in", [point.passage_id for point in points])]
        rows = pq.read_table(file, columns=["passage_id", "text"], filters=wanted).to_pylist()
        texts.update((row["passage_id"], row["text"]) for row in rows)
    return texts
