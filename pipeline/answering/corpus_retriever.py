"""Search and front matter lookups over a data root."""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline import tables
from pipeline.answering.facts import Author, FrontMatter
from pipeline.answering.retrieval import RetrievedPassage, Search
from pipeline.arxiv.identifiers import month_of
from pipeline.arxiv.months import select_months
from pipeline.engine.stage import Workspace
from pipeline.errors import SettingError
from pipeline.index.fusion import By
from pipeline.index.opening import live_index
from pipeline.index.papers import rows_of_papers
from pipeline.index.search import Hit, search_many
from pipeline.index.search_options import MOST, SearchOptions

_PASSAGE_COLUMNS = ["passage_id", "arxiv_id", "ordinal", "anchor", "kind", "title", "section_path", "text"]


@dataclass(frozen=True, slots=True)
class MonthSpan:
    """Months that answers may draw on, `YYYY-MM`, both included; None for no limit."""

    first: str | None = None
    last: str | None = None

    def holds(self, month: str) -> bool:
        """Whether a month lies within."""
        return (self.first is None or self.first <= month) and (self.last is None or month <= self.last)


ALL_MONTHS = MonthSpan()


def month_span(workspace: Workspace, months: str) -> MonthSpan:
    """The months of an argument (`all`, `2024-03`, `2024-03..2024-05`) as one span.

    Raises SettingError if it is malformed, or names months without passages or with gaps, which a search cannot have.
    """
    if months.strip() == "all":
        return ALL_MONTHS
    present = workspace.root.months(tables.PASSAGES)
    chosen = select_months(months, present)
    span = MonthSpan(chosen[0], chosen[-1])
    between = [month for month in present if span.holds(month) and month not in chosen]
    if between:
        raise SettingError(
            f"--months {months} leaves out {', '.join(between)}: answers draw on one span of months, such as "
            f"{span.first}..{span.last}"
        )
    return span


def check_index(workspace: Workspace) -> None:
    """Raise MissingInput if nothing is indexed, before a model is paid for a query."""
    live_index(workspace)


def index_search(workspace: Workspace, span: MonthSpan = ALL_MONTHS, by: By = "fused") -> Search:
    """A search of the workspace's index, for `BatchedRetriever`; at most 1,000 passages a query. by: vectors that rank.

    The embedder is loaded once in a process. The search raises as `pipeline.index.search.search` does.
    """

    def search(queries: Sequence[str], count: int) -> list[list[RetrievedPassage]]:
        options = SearchOptions(limit=min(count, MOST), first_month=span.first, last_month=span.last, by=by)
        return [[_passage_of(hit) for hit in hits] for hits in search_many(workspace, queries, options)]

    return search


def _passage_of(hit: Hit) -> RetrievedPassage:
    return RetrievedPassage(
        hit.passage_id, hit.arxiv_id, hit.title, hit.section_path, hit.anchor, hit.kind, hit.text, hit.month,
        hit.relevance,
    )  # fmt: skip


class FrontMatterTables:
    """`Facts` from the tables `papers`, `metadata` and `passages`, of the papers of a span."""

    def __init__(self, workspace: Workspace, span: MonthSpan = ALL_MONTHS) -> None:
        self._root, self._span = workspace.root, span

    async def front_matter(self, arxiv_ids: Sequence[str]) -> list[FrontMatter]:
        """As `Facts` says; the tables are read off the event loop. Raises PermanentFailure if one is broken."""
        return await asyncio.to_thread(self._read, arxiv_ids)

    def _read(self, arxiv_ids: Sequence[str]) -> list[FrontMatter]:
        in_span = [
            paper
            for paper in dict.fromkeys(arxiv_ids)
            if (month := month_of(paper)) is not None and self._span.holds(month)
        ]
        columns = ["arxiv_id", "authors", "categories"]
        pages = {row["arxiv_id"]: row for row in rows_of_papers(self._root, tables.PAPERS, in_span, columns)}
        columns.append("published")
        listed = {row["arxiv_id"]: row for row in rows_of_papers(self._root, tables.METADATA, in_span, columns)}
        passages: dict[str, dict[str, Any]] = {}
        for row in rows_of_papers(self._root, tables.PASSAGES, in_span, _PASSAGE_COLUMNS):
            # Long front matter has several parts; the first names the authors.
            earlier = passages.get(row["arxiv_id"])
            if row["kind"] == "front_matter" and (earlier is None or row["ordinal"] < earlier["ordinal"]):
                passages[row["arxiv_id"]] = row
        return [
            _front_matter(passages[paper], pages.get(paper, {}), listed.get(paper, {}))
            for paper in in_span
            if paper in passages
        ]


def _front_matter(passage: Mapping[str, Any], page: Mapping[str, Any], listed: Mapping[str, Any]) -> FrontMatter:
    month = month_of(passage["arxiv_id"]) or ""
    return FrontMatter(
        _front_passage(month, passage),
        _authors(page.get("authors") or (), listed.get("authors") or ()),
        # An arXiv id says the month.
        listed.get("published") or month,
        tuple(page.get("categories") or listed.get("categories") or ()),
    )


def _front_passage(month: str, row: Mapping[str, Any]) -> RetrievedPassage:
    return RetrievedPassage(
        row["passage_id"], row["arxiv_id"], row["title"] or "", tuple(row["section_path"]), row["anchor"], row["kind"],
        row["text"], month,
    )  # fmt: skip


def _authors(page: Sequence[Mapping[str, Any]], listed: Sequence[str]) -> tuple[Author, ...]:
    """The authors of the page, with affiliations; if metadata names more or fewer people, its authors."""
    authors = tuple(Author(author["name"], tuple(author["affiliations"])) for author in page)
    if not listed or len(authors) == len(listed):
        return authors
    affiliations = {_key(author.name): author.affiliations for author in authors}
    return tuple(Author(name, affiliations.get(_key(name), ())) for name in listed)


def _key(name: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())
