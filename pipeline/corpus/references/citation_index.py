"""Who cites a paper: the citations of all months by the cited paper."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from pipeline import tables
from pipeline.corpus.nouns import CitingPaper, Paper
from pipeline.corpus.paper_index import papers_with_ids
from pipeline.engine.month_index import MonthIndex, TableSource
from pipeline.engine.stage import Job, Workspace
from pipeline.errors import SettingError
from pipeline.identity.identifiers import arxiv_id_of, months_of
from pipeline.tables import REFERENCES, Table

_VERSION = 1
_SCHEMA = """
create table citations (
    cited text, citing text, month text, passages text, primary key (cited, citing, month)
) without rowid;
create index citations_of_month on citations (month)
"""
_SHARED_WORKS = """
select citing, count(*) from citations where cited in (select value from json_each(?))
group by citing
"""
_CITING_PAPERS = """
select cited, count(distinct citing) from citations
where cited in (select value from json_each(?)) group by cited
"""

_NOTE = "cited_months"


def note_cited_months(job: Job, papers: Iterable[str]) -> None:
    """Note the months of these papers, which the rows of the job cite."""
    job.notes[_NOTE] = months_of(papers)


def cited_months(
    workspace: Workspace, table: Table, month: str, read_papers: Callable[[], Iterable[str]]
) -> list[str]:
    """The months that a month of a table cites, oldest first.

    read_papers: reads the cited papers from the rows; called for files of earlier versions, which
    lack the note. Raises what it raises.
    """
    provenance = workspace.root.provenance(table, month)
    noted = provenance.notes.get(_NOTE) if provenance else None
    return months_of(read_papers()) if noted is None else list(noted)


def months_cited_by_references(workspace: Workspace, month: str) -> list[str]:
    """The months of the papers to which a month of `references` is resolved, oldest first.

    Raises as `DataRoot.read` does.
    """

    def read_papers() -> set[str]:
        rows = workspace.root.read(REFERENCES, month, ["cited_arxiv_id"])
        return set(rows["cited_arxiv_id"].drop_null().to_pylist())

    return cited_months(workspace, REFERENCES, month, read_papers)


def citation_index(workspace: Workspace) -> MonthIndex:
    """The index of the table `citations`."""
    return MonthIndex(
        workspace=workspace,
        name="citations",
        version=_VERSION,
        schema=_SCHEMA,
        replace_month=_replace_month,
        source=TableSource(workspace, tables.CITATIONS, ["cited", "citing", "passage_ids"]),
    )


def read_citing_papers(workspace: Workspace, identifier: str) -> list[CitingPaper]:
    """The papers of the corpus that cite a paper, by month and id. The cited paper need not be in
    the corpus itself.

    Raises SettingError for a malformed id, PermanentFailure if a table cannot be read.
    """
    arxiv_id = arxiv_id_of(identifier)
    if arxiv_id is None:
        raise SettingError(f"{identifier[:80]!r} is not an arXiv id: give one such as 2404.90003")
    query = "select citing, passages from citations where cited = ? order by month, citing"
    with citation_index(workspace).open() as connection:
        rows = connection.execute(query, (arxiv_id,)).fetchall()
    return _citing_papers(workspace, rows)


def read_papers_citing_doi(workspace: Workspace, doi: str) -> tuple[str | None, list[CitingPaper]]:
    """The arXiv id that bibliographies give the work of a DOI (in lower case), None if none does,
    and the papers of the corpus that cite the DOI, without their passages.

    Reads the DOIs of all references. Raises PermanentFailure if a table cannot be read.
    """
    root, columns = workspace.root, ["arxiv_id", "cited_arxiv_id"]
    rows = [
        (row["arxiv_id"], row["cited_arxiv_id"])
        for month in root.months(tables.REFERENCES)
        for row in root.rows_with(tables.REFERENCES, month, "doi", [doi], columns)
    ]
    ids = Counter(arxiv_id for _, arxiv_id in rows if arxiv_id)
    citing = dict.fromkeys((paper, "") for paper, _ in rows)
    return max(ids, key=ids.__getitem__, default=None), _citing_papers(workspace, list(citing))


def _citing_papers(workspace: Workspace, rows: Sequence[tuple[str, str]]) -> list[CitingPaper]:
    """The papers of rows (paper, ids of its passages)."""
    papers = papers_with_ids(workspace, (citing for citing, _ in rows))
    return [
        CitingPaper(papers.get(citing) or Paper(citing), tuple(passages.split()))
        for citing, passages in rows
    ]


def count_shared_works(workspace: Workspace, cited: Collection[str]) -> Counter[str]:
    """The papers that cite any of these papers, each with how many of them it cites."""
    return _count(workspace, _SHARED_WORKS, cited)


def count_citing_papers(workspace: Workspace, cited: Collection[str]) -> Counter[str]:
    """By how many papers of the corpus each of these papers is cited."""
    return _count(workspace, _CITING_PAPERS, cited)


def _count(workspace: Workspace, query: str, cited: Collection[str]) -> Counter[str]:
    """The counts that a query on some cited papers returns, by paper."""
    with citation_index(workspace).open() as connection:
        rows = connection.execute(query, (json.dumps(list(cited)),))
        return Counter(dict(rows.fetchall()))


def _replace_month(
    connection: sqlite3.Connection, month: str, rows: Iterable[Mapping[str, Any]]
) -> None:
    connection.execute("delete from citations where month = ?", (month,))
    connection.executemany(
        "insert into citations values (?, ?, ?, ?)",
        ((row["cited"], row["citing"], month, " ".join(row["passage_ids"])) for row in rows),
    )
