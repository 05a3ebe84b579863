"""The front matter of papers, read from the tables `papers`, `metadata` and `passages`."""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from pipeline import tables
from pipeline.answering.paper_lists import list_papers, papers_of_author
from pipeline.answering.question_words import content_words
from pipeline.answering.retriever import ALL_MONTHS, MonthSpan
from pipeline.corpus.nouns import PASSAGE_COLUMNS, Passage
from pipeline.corpus.paper_index import find_papers, papers_named_in
from pipeline.corpus.parse.parsed_page import Author
from pipeline.embedding.lexical import term_id, terms_of
from pipeline.engine.stage import Workspace
from pipeline.identity.identifiers import month_of
from pipeline.index.papers import rows_of_papers
from pipeline.index.search import search_many
from pipeline.index.search_options import SearchOptions
from pipeline.storage.writing import Row
from pipeline.tables import Table
from pipeline.text import one_line

# Passages that are looked at for a name: those that a search by its words ranks first.
_HOLDING_NAME = 20


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The authors, date and categories of one paper, and the passage on which claims rest.

    date: of the first version, YYYY-MM-DD or YYYY-MM; None if unknown. categories: primary first.
    """

    passage: Passage
    authors: tuple[Author, ...] = ()
    date: str | None = None
    categories: tuple[str, ...] = ()


class FrontMatterTables:
    """The front matter of the papers of a span of months."""

    def __init__(self, workspace: Workspace, span: MonthSpan = ALL_MONTHS) -> None:
        self._workspace, self._span = workspace, span

    async def front_matter(self, arxiv_ids: Sequence[str]) -> list[FrontMatter]:
        """The front matter of these papers, in order, without papers that are missing.

        The tables are read off the event loop. Raises PermanentFailure if one is broken.
        """
        return await asyncio.to_thread(self._read, arxiv_ids)

    async def papers_named_in(self, question: str) -> dict[str, list[str]]:
        """The names of papers of these months in a question, in order, and the papers of each.

        Words are looked up as a name if they have a capital, or if at least three of them are
        content words. Raises as `MonthIndex.open` does.
        """
        papers_by_name = await asyncio.to_thread(
            papers_named_in, self._workspace, question, _may_be_name
        )
        papers_of_span: dict[str, list[str]] = {}
        for name, papers in papers_by_name.items():
            of_span = [paper for paper in papers if self._span.holds(month_of(paper) or "")]
            if of_span:
                papers_of_span[name] = of_span
        return papers_of_span

    async def absent_names(self, names: Sequence[str]) -> list[str]:
        """Those of some names that no author and no passage of these months has.

        Run off the event loop. Raises as `search_many` and the index of papers do.
        """
        return await asyncio.to_thread(self._absent, [name for name in names if terms_of(name)])

    async def list_papers(self, question: str, papers: Sequence[str]) -> list[str] | None:
        """Run `paper_lists.list_papers` off the event loop."""
        return await asyncio.to_thread(list_papers, self._workspace, self._span, question, papers)

    async def papers_of_author(self, question: str) -> list[str]:
        """Run `paper_lists.papers_of_author` off the event loop."""
        return await asyncio.to_thread(papers_of_author, self._workspace, self._span, question)

    def _absent(self, names: Sequence[str]) -> list[str]:
        options = SearchOptions(
            limit=_HOLDING_NAME,
            by="lexical",
            first_month=self._span.first,
            last_month=self._span.last,
        )
        rankings = search_many(self._workspace, names, options)
        absent = []
        for name, ranking in zip(names, rankings, strict=True):
            wanted = set(map(term_id, terms_of(name)))
            # A passage or its heading may have them in another inflection.
            held = (set(map(term_id, terms_of(scored.item.prompt_text()))) for scored in ranking)
            if not any(map(wanted.issubset, held)) and not find_papers(
                self._workspace, author=name, limit=1
            ):
                absent.append(name)
        return absent

    def _read(self, arxiv_ids: Sequence[str]) -> list[FrontMatter]:
        papers = [
            paper
            for paper in dict.fromkeys(arxiv_ids)
            if (month := month_of(paper)) and self._span.holds(month)
        ]
        pages = self._rows(tables.PAPERS, papers, "authors", "categories")
        metadata = self._rows(tables.METADATA, papers, "authors", "categories", "published")
        passages = self._first_passages(papers)
        fronts = []
        for paper in papers:
            if paper not in passages:
                continue
            page, record = pages.get(paper, {}), metadata.get(paper, {})
            front = FrontMatter(
                passages[paper],
                _authors(page.get("authors") or (), record.get("authors") or ()),
                record.get("published") or passages[paper].month,
                tuple(page.get("categories") or record.get("categories") or ()),
            )
            fronts.append(front)
        return fronts

    def _rows(self, table: Table, papers: Sequence[str], *columns: str) -> dict[str, Row]:
        rows = rows_of_papers(self._workspace.root, table, papers, ["arxiv_id", *columns])
        return {row["arxiv_id"]: row for row in rows}

    def _first_passages(self, papers: Sequence[str]) -> dict[str, Passage]:
        """Each paper's first part of its front matter, which names the authors."""
        columns = [*PASSAGE_COLUMNS, "ordinal"]
        rows = rows_of_papers(self._workspace.root, tables.PASSAGES, papers, columns)
        parts = [row for row in rows if row["kind"] == "front_matter"]
        parts.sort(key=itemgetter("ordinal"), reverse=True)
        return {row["arxiv_id"]: Passage.from_row(row) for row in parts}


def _may_be_name(words: str) -> bool:
    content = content_words(words)
    return len(content) >= 3 or (bool(content) and words != words.lower())


def _authors(page: Sequence[Mapping[str, Any]], metadata: Sequence[str]) -> tuple[Author, ...]:
    """The authors of the page, with affiliations; those of metadata where the numbers differ."""
    authors = tuple(
        Author(author["name"], tuple(author["affiliations"]), tuple(author["emails"]))
        for author in page
    )
    if not metadata or len(authors) == len(metadata):
        return authors
    by_name = {_name_key(author.name): author for author in authors}
    return tuple(
        by_name.get(_name_key(name), Author(name))._replace(name=name) for name in metadata
    )


def _name_key(name: str) -> str:
    return one_line(unicodedata.normalize("NFKC", name).casefold())
