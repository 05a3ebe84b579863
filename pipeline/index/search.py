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
from pipeline.subjects import spelt

if TYPE_CHECKING:
    from pathlib import Path

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
    worst_grade: str | None = None,
) -> list[Hit]:
    """The passages that answer a query best, best first.

    category: one category (cs.CL) or archive (cs), in capitals or not. Months as YYYY-MM, both included.
    worst_grade: only passages of papers whose page is of this grade or a better one. Raises
    SettingError for an argument that is wrong or a category that no passage has, MissingInput where nothing is
    indexed, PermanentFailure where the index was made by another model or a table is broken, TransientFailure where
    the index does not answer or another process holds it. Never makes a collection.
    """
    _check(query, limit, first_month, last_month)
    category = None if category is None else _spelt(category)
    grades = _grades(worst_grade)
    index, embedder = open_index(workspace), make_embedder(workspace.settings)
    _check_index(index, embedder, workspace)
    restriction = Restriction(embedder.name, category, first_month, last_month, tuple(kinds), grades)
    vectors = embedder.encode_queries([query])[0]
    found = index.search(
        vectors.dense.tolist(),
        vectors.sparse_ids.tolist(),
        vectors.sparse_weights.tolist(),
        limit=limit,
        restriction=restriction,
    )
    if category is not None and not found:
        _insist_on_category(index, category)
    return _hits(workspace, found)


def _check(query: str, limit: int, first_month: str | None, last_month: str | None) -> None:
    if not query.strip():
        raise SettingError("the query is empty: give some words to search for")
    if not _is_unicode(query):
        raise SettingError("the query is not valid UTF-8: type it again, or see that the terminal's locale is UTF-8")
    if not 1 <= limit <= MOST:
        raise SettingError(f"the limit {limit} is not between 1 and {MOST}")
    months = [parse_month(month) for month in (first_month, last_month) if month is not None]
    if months != sorted(months):
        raise SettingError(f"the months run backwards, from {first_month} to {last_month}")


def _grades(worst: str | None) -> tuple[str, ...]:
    """The grades down to the worst that is asked for; none where nothing is asked."""
    if worst is None:
        return ()
    if worst.upper() not in tables.GRADES:
        raise SettingError(f"there is no grade {worst}: give one of {', '.join(tables.GRADES)}")
    return tables.GRADES[: tables.GRADES.index(worst.upper()) + 1]


def _is_unicode(text: str) -> bool:
    """Whether a text can be encoded: bytes of an argument that are no UTF-8 come as lone surrogates (PEP 383)."""
    return not any("\ud800" <= sign <= "\udfff" for sign in text)


def _spelt(category: str) -> str:
    """A category as arXiv spells it. Raises SettingError for what is none."""
    found = spelt(category)
    if found is None:
        raise SettingError(f"{category!r} is not a category: write one such as cs.CL, or an archive such as cs")
    return found


def _insist_on_category(index: PassageIndex, category: str) -> None:
    """Raise SettingError where no passage has the category; asked only of a search that found nothing."""
    archive, dot, _ = category.partition(".")
    archives = index.values("archives")
    if archive not in archives:
        raise SettingError(f"no passage is of the archive {archive}; the index holds {', '.join(archives)}")
    of_archive = [each for each in index.values("categories") if each.partition(".")[0] == archive]
    if dot and category not in of_archive:
        raise SettingError(f"no passage is of the category {category}; of {archive}, there are {', '.join(of_archive)}")


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
    by_month: dict[str, list[Found]] = defaultdict(list)
    for point in found:
        by_month[point.payload["month"]].append(point)
    texts: dict[str, str] = {}
    for month, points in by_month.items():
        workspace.root.read(tables.PASSAGES, month, columns=[])
        texts.update(_texts_of(workspace.root.file(tables.PASSAGES, month), month, points))
    return texts


def _texts_of(file: Path, month: str, points: Sequence[Found]) -> dict[str, str]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    papers = sorted({point.payload["arxiv_id"] for point in points})
    wanted = [("arxiv_id", "in", papers), ("passage_id", "in", [point.passage_id for point in points])]
    try:
        rows = pq.read_table(file, columns=["passage_id", "text"], filters=wanted).to_pylist()
    except (OSError, ValueError, pa.ArrowException) as error:
        raise PermanentFailure(
            f"{file} cannot be read ({' '.join(str(error).split())}): make it again by "
            f"citeloom run --months {month} --select {tables.PASSAGES.name} --force"
        ) from error
    return {row["passage_id"]: row["text"] for row in rows}
