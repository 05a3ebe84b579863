"""Papers and passages read from the tables: a paper by its id, texts of hits, and the query text
for similar ones.
"""

from __future__ import annotations

import contextlib
import logging
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any
from uuid import UUID

from pipeline import tables
from pipeline.corpus.nouns import (
    PASSAGE_COLUMNS,
    FullPaper,
    Paper,
    Passage,
    Reference,
)
from pipeline.corpus.paper_index import papers_with_ids
from pipeline.corpus.passages.text import embedded_text
from pipeline.corpus.references.citation_index import count_citing_papers
from pipeline.errors import MissingInput, SettingError
from pipeline.identity.identifiers import arxiv_id_of, group_by_month
from pipeline.index.opening import live_index
from pipeline.index.passage_index import ScoredPoint
from pipeline.storage.data_root import DataRoot
from pipeline.tables import Table
from pipeline.text import clip

if TYPE_CHECKING:
    import pyarrow as pa

    from pipeline.engine.stage import Workspace

_log = logging.getLogger(__name__)

_REFERENCE_COLUMNS = [
    "key",
    "ordinal",
    "raw",
    "title",
    "authors",
    "year",
    "venue",
    "doi",
    "cited_arxiv_id",
]


def read_paper(workspace: Workspace, identifier: str) -> FullPaper:
    """The paper with this arXiv id, in any spelling, or at this address.

    Passages and references are empty where their tables have not been made yet. Raises MissingInput
    if the corpus does not hold the paper, PermanentFailure if a table cannot be read.
    """
    arxiv_id = arxiv_id_of(identifier) or identifier.strip()
    with workspace.read_cache():
        paper = read_papers(workspace, [arxiv_id]).get(arxiv_id)
        if paper is None:
            raise MissingInput(
                f"this corpus holds no paper {identifier[:80]!r}: give an arXiv id that citeloom"
                " papers lists"
            )
        return FullPaper(
            **{part.name: getattr(paper, part.name) for part in fields(Paper)},
            passages=_read_passages(workspace.root, arxiv_id),
            references=_read_references(workspace, arxiv_id),
        )


def read_papers(workspace: Workspace, arxiv_ids: Collection[str]) -> dict[str, Paper]:
    """The papers of these ids that the corpus holds, with abstract, grade and citations."""
    papers = papers_with_ids(workspace, arxiv_ids, whole=True)
    cited_by = count_citing_papers(workspace, papers) if papers else Counter[str]()
    return {
        arxiv_id: replace(paper, cited_by=cited_by[arxiv_id]) for arxiv_id, paper in papers.items()
    }


def papers_of(workspace: Workspace, passages: Sequence[Passage]) -> list[Paper]:
    """The paper of each passage; without more than its title where its month is being made anew."""
    papers = read_papers(workspace, {passage.arxiv_id for passage in passages})
    return [
        papers.get(passage.arxiv_id) or Paper(passage.arxiv_id, passage.title)
        for passage in passages
    ]


def _read_passages(root: DataRoot, arxiv_id: str) -> tuple[Passage, ...]:
    columns = [*PASSAGE_COLUMNS, "ordinal"]
    rows = rows_of_papers(root, tables.PASSAGES, [arxiv_id], columns)
    return tuple(Passage.from_row(row) for row in sorted(rows, key=itemgetter("ordinal")))


def _read_references(workspace: Workspace, arxiv_id: str) -> tuple[Reference, ...]:
    rows = list(rows_of_papers(workspace.root, tables.REFERENCES, [arxiv_id], _REFERENCE_COLUMNS))
    cited = [row["cited_arxiv_id"] for row in rows if row["cited_arxiv_id"]]
    held = papers_with_ids(workspace, cited) if cited else {}
    return tuple(
        _reference(row, held.get(row["cited_arxiv_id"]))
        for row in sorted(rows, key=itemgetter("ordinal"))
    )


def _reference(row: Mapping[str, Any], paper: Paper | None) -> Reference:
    """The reference of a row. paper: the cited one, if the corpus holds it."""
    title = (paper and paper.title) or row["title"]
    return Reference(
        key=row["key"],
        raw=clip(row["raw"] or ""),
        title=title and clip(title),
        authors=tuple(map(clip, row["authors"] or ())),
        year=row["year"],
        venue=row["venue"],
        doi=row["doi"],
        arxiv_id=row["cited_arxiv_id"],
        in_corpus=paper is not None,
    )


def count_passages(root: DataRoot, identifiers: Collection[str]) -> Counter[str]:
    """How many passages the corpus has of each of these papers that has any. Raises as
    `tables_of_papers` does.
    """
    counts = Counter[str]()
    for rows in tables_of_papers(root, tables.PASSAGES, identifiers, ["arxiv_id"]):
        counts.update(rows["arxiv_id"].to_pylist())
    return counts


def rows_of_papers(
    root: DataRoot, table: Table, identifiers: Collection[str], columns: list[str]
) -> Iterator[dict[str, Any]]:
    """The rows of `tables_of_papers`, one by one."""
    for rows in tables_of_papers(root, table, identifiers, columns):
        yield from rows.to_pylist(maps_as_pydicts="strict")


def tables_of_papers(
    root: DataRoot, table: Table, identifiers: Collection[str], columns: list[str]
) -> Iterator[pa.Table]:
    """The rows of these papers, month by month, of the months that the table has, by row group.

    Row groups without any of them are not read. Raises PermanentFailure if a month's file is
    damaged.
    """
    by_month = group_by_month(identifiers)
    if len(by_month) > 1:
        months = sorted(by_month.keys() & set(root.months(table)))
    else:  # a look at one file costs less than a listing of all
        months = [month for month in by_month if root.file(table, month).exists()]
    for month in months:
        yield from root.tables_with(table, month, "arxiv_id", by_month[month], columns)


def read_texts(workspace: Workspace, hits: Iterable[ScoredPoint]) -> Mapping[str, str]:
    """Passage id to text. Passages that their table lacks, or whose month has none, are left out
    and counted in a warning. Raises PermanentFailure if a table cannot be read.
    """
    points = {point.passage_id: point for point in hits}
    by_month: dict[str, list[ScoredPoint]] = defaultdict(list)
    for point in points.values():
        by_month[point.payload["month"]].append(point)
    texts: dict[str, str] = {}
    for month, of_month in sorted(by_month.items()):
        papers = {point.payload["arxiv_id"] for point in of_month}
        ids = {point.passage_id for point in of_month}
        rows = workspace.root.rows_with(
            tables.PASSAGES, month, "arxiv_id", papers, ["passage_id", "text"], ids
        )
        with contextlib.suppress(MissingInput):  # the warning below says so
            texts.update((row["passage_id"], row["text"]) for row in rows)
    lost = [point for point in points.values() if point.passage_id not in texts]
    if lost:
        _log.warning(
            "%d hits are not in the passages table of %s and are left out: run citeloom run on"
            " these months",
            len(lost),
            ", ".join(sorted({point.payload["month"] for point in lost})),
        )
    return texts


def read_like(workspace: Workspace, identifier: str) -> tuple[str, str]:
    """(text to search for, the paper that it is of): a paper's title and abstract, or a passage
    under its headings.

    identifier: of a paper (arXiv id) or a passage. Raises SettingError if the corpus does not
    hold it, MissingInput if nothing is indexed.
    """
    passage_id = _passage_id(identifier)
    if passage_id is not None:
        return _text_of_passage(workspace, passage_id)
    arxiv_id = arxiv_id_of(identifier) or identifier
    text = text_of_paper(workspace, arxiv_id)
    if text is None:
        raise SettingError(
            f"--like: the corpus holds no paper {arxiv_id}: give an arXiv id or a passage's id of a"
            " search"
        )
    return text, arxiv_id


def _passage_id(identifier: str) -> str | None:
    """The identifier as a passage's id; None for any other text."""
    try:
        return str(UUID(identifier))
    except ValueError:
        return None


def text_of_paper(workspace: Workspace, arxiv_id: str) -> str | None:
    """A paper's title and abstract, or its id where it has neither; None if the corpus does not
    hold it.
    """
    for row in rows_of_papers(workspace.root, tables.PAPERS, [arxiv_id], ["title", "abstract"]):
        return "\n".join(filter(None, (row["title"], row["abstract"]))) or arxiv_id
    return None


def _text_of_passage(workspace: Workspace, passage_id: str) -> tuple[str, str]:
    payloads = live_index(workspace).payloads([passage_id])
    points = [ScoredPoint(passage_id, 0.0, payload) for payload in payloads.values()]
    texts = read_texts(workspace, points)
    if passage_id not in texts:
        raise SettingError(
            f"--like: the index holds no passage {passage_id}: take an id from citeloom search"
            " --json"
        )
    payload = payloads[passage_id]
    text = embedded_text(payload["title"], payload["section_path"], texts[passage_id])
    return text, payload["arxiv_id"]
