"""The query text of a paper or passage, to search for similar ones."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from pipeline import tables
from pipeline.arxiv.identifiers import normalize_arxiv_id
from pipeline.corpus.passages.text import embedded_text
from pipeline.errors import SettingError
from pipeline.index.opening import live_index
from pipeline.index.passage_index import ScoredPassage
from pipeline.index.passage_texts import read_texts
from pipeline.wikipedia.root import month_in

if TYPE_CHECKING:
    from pipeline.engine.stage import Workspace


def read_like(workspace: Workspace, identifier: str) -> tuple[str, str]:
    """(text to search for, the paper that it is of): a paper's title and abstract, or a passage under its headings.

    identifier: of a paper (arXiv id), an article of Wikipedia, or a passage. Raises SettingError if the corpus does not
    hold it, MissingInput if nothing is indexed.
    """
    try:
        return _passage(workspace, str(UUID(identifier)))
    except ValueError:
        return _paper(workspace, normalize_arxiv_id(identifier) or identifier)


def _paper(workspace: Workspace, arxiv_id: str) -> tuple[str, str]:
    month = month_in(workspace.root, arxiv_id)
    if month is not None and month in workspace.root.months(tables.PAPERS):
        for row in workspace.root.rows_with(tables.PAPERS, month, "arxiv_id", {arxiv_id}, ["title", "abstract"]):
            return "\n".join(filter(None, (row["title"], row["abstract"]))), arxiv_id
    raise SettingError(f"--like: the corpus holds no paper {arxiv_id}: give an arXiv id or a passage's id of a search")


def _passage(workspace: Workspace, passage_id: str) -> tuple[str, str]:
    payload = live_index(workspace).payloads([passage_id]).get(passage_id)
    texts = {} if payload is None else read_texts(workspace, [ScoredPassage(passage_id, 0.0, payload)])
    if payload is None or passage_id not in texts:
        raise SettingError(f"--like: the index holds no passage {passage_id}: take an id from citeloom search --json")
    return embedded_text(payload["title"], payload["section_path"], texts[passage_id]), payload["arxiv_id"]
