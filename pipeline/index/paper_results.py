"""Search for papers: a page of them for each query, each with its best passages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pipeline import tables
from pipeline.corpus.citation_formats import bibtex_of
from pipeline.corpus.paper import PAPER_COLUMNS, Paper
from pipeline.corpus.parse.policies import without_known_markers
from pipeline.corpus.passages.sentences import split_sentences
from pipeline.corpus.references.citation_index import CitingPaper, count_citing_papers
from pipeline.index.author_queries import AuthorQuery
from pipeline.index.excerpts import RankedPassage, rank_sentences
from pipeline.index.paper_ranking import RankedPaper, best_passages, rank_papers
from pipeline.index.papers import rows_of_papers
from pipeline.index.passage_results import own_passages
from pipeline.index.relevance import Relevance
from pipeline.index.scored import Hit
from pipeline.index.search_options import SearchOptions, check_queries
from pipeline.index.typed_queries import QueryReading, read_example, read_query, spelling_note

if TYPE_CHECKING:
    from pipeline.engine.stage import Workspace

NOTHING_FITS = "nothing in this corpus fits well; these are the nearest papers"
# Characters of an abstract that a result shows, in whole sentences.
_ABSTRACT = 320


@dataclass(frozen=True, slots=True)
class PaperHit:
    """A paper that a search returns.

    abstract: its first sentences. passages: its best ones for the query, at most two. cited_by: how
    many papers of the corpus cite it. relevance: whether it fits the query at all; None if unknown.
    score: comparable only within one search. url: its page on arXiv.
    """

    arxiv_id: str
    title: str
    authors: tuple[str, ...]
    year: int | None
    month: str
    categories: tuple[str, ...]
    url: str
    abstract: str
    passages: tuple[RankedPassage, ...]
    cited_by: int
    bibtex: str
    relevance: Relevance | None
    score: float

    @property
    def paper(self) -> Paper:
        """The paper without its results."""
        return Paper(self.arxiv_id, self.title, self.authors, self.year, self.categories)


@dataclass(frozen=True, slots=True)
class SearchResults:
    """A page of papers, best first, to iterate over and to index.

    searched: the words that were searched for, if their spelling was corrected, else None. named:
    arXiv id of the paper that the query names; it comes first, or, where the corpus does not hold
    it, cited_by are the papers that cite it. fits: whether the papers fit the query; if not, they
    are the nearest ones. first: number of the page's first paper. has_more: whether a next page
    has papers that fit. note: all of this in words; empty for an ordinary search.
    """

    query: str
    papers: tuple[PaperHit, ...] = ()
    searched: str | None = None
    named: str | None = None
    cited_by: tuple[CitingPaper, ...] = ()
    fits: bool = True
    first: int = 1
    has_more: bool = False
    note: str = ""

    def __iter__(self) -> Iterator[PaperHit]:
        return iter(self.papers)

    def __len__(self) -> int:
        return len(self.papers)

    def __getitem__(self, place: int) -> PaperHit:
        return self.papers[place]


def search_papers(
    workspace: Workspace,
    queries: Sequence[str],
    options: SearchOptions,
    *,
    include_unfit: bool = False,
) -> list[SearchResults]:
    """A page of papers for each query. limit and offset of the options count papers.

    include_unfit: papers that do not fit count too. Raises as `search.search` does.
    """
    options = options.checked()
    check_queries(queries)
    with workspace.read_cache():
        distinct = {query: read_query(workspace, query, options) for query in queries}
        results = _results(workspace, list(distinct.values()), options, include_unfit)
    by_query = dict(zip(distinct, results, strict=True))
    return [by_query[query] for query in queries]


def papers_like(
    workspace: Workspace,
    identifier: str,
    options: SearchOptions,
    *,
    include_unfit: bool = False,
) -> SearchResults:
    """A page of the papers that are like a paper (arXiv id) or a passage (its id). Raises
    SettingError for an unknown id, and as `search.search` does.
    """
    with workspace.read_cache():
        reading = read_example(workspace, identifier)
        return _results(workspace, [reading], options.checked(), include_unfit)[0]


def _results(
    workspace: Workspace,
    readings: Sequence[QueryReading],
    options: SearchOptions,
    include_unfit: bool,
) -> list[SearchResults]:
    """The results of queries, in their order."""
    # A query that leaves out a paper of its own is searched for alone.
    alone = [reading for reading in readings if reading.text and reading.without]
    together = [reading for reading in readings if reading.text and not reading.without]
    # A leading paper takes a place on the page, and is left out of the others.
    deeper = replace(options, limit=options.limit + 1)
    groups = [(together, deeper)]
    for reading in alone:
        others = (*options.without_papers, reading.without or "")
        groups.append(([reading], replace(deeper, without_papers=others)))
    pages = {
        reading.typed: _page(workspace, reading, [], options, include_unfit)
        for reading in readings
        if not reading.text
    }
    for group, group_options in groups:
        rankings = rank_papers(
            workspace,
            [reading.text for reading in group],
            group_options,
            [reading.as_typed for reading in group],
            include_unfit=include_unfit,
        )
        for reading, ranking in zip(group, rankings, strict=True):
            page = _page(workspace, reading, ranking, options, include_unfit)
            if reading.author and (reading.author.is_sure or not page.fits):
                page = _page_of_author(workspace, reading, reading.author, options) or page
            pages[reading.typed] = page
    return [pages[reading.typed] for reading in readings]


def _page_of_author(
    workspace: Workspace, reading: QueryReading, author: AuthorQuery, options: SearchOptions
) -> SearchResults | None:
    """The page of an author's papers; None where the filters leave none."""
    whole = replace(author.options, limit=options.limit + 1)
    ranking = rank_papers(workspace, [reading.text], whole, [reading.text], include_unfit=True)[0]
    if not ranking:
        return None
    papers = [replace(paper, relevance="strong") for paper in ranking]
    return SearchResults(
        query=reading.typed,
        papers=_hits(workspace, papers[options.offset : options.end], reading.text),
        first=options.offset + 1,
        has_more=len(papers) > options.end,
        note=author.note,
    )


def _page(
    workspace: Workspace,
    reading: QueryReading,
    ranking: Sequence[RankedPaper],
    options: SearchOptions,
    include_unfit: bool,
) -> SearchResults:
    """The page of a ranking, with the paper first that the query names."""
    leading = _leading_paper(workspace, reading, ranking, options)
    papers = list(ranking)
    fits = any(paper.fits for paper in ranking)
    if leading is not None:
        others = [paper for paper in ranking if paper.arxiv_id != leading.arxiv_id]
        papers = [leading, *(others if fits or include_unfit else [])]
    page = papers[options.offset : options.end]
    return SearchResults(
        query=reading.typed,
        papers=_hits(workspace, page, reading.text),
        searched=reading.text if reading.is_corrected and fits else None,
        named=reading.paper,
        cited_by=reading.cited_by,
        fits=fits or leading is not None,
        first=options.offset + 1,
        has_more=(fits or include_unfit) and len(papers) > options.end,
        note=_note(reading, leading, page, fits=fits),
    )


def _note(
    reading: QueryReading,
    leading: RankedPaper | None,
    page: Sequence[RankedPaper],
    *,
    fits: bool,
) -> str:
    """How the query was read, and whether anything fits; empty for an ordinary search."""
    if reading.note:
        return reading.note
    if reading.paper and reading.without:
        if leading is None:
            paper = reading.paper
            return f"no passage of {paper} is indexed within these filters; papers similar to it"
        return f"{reading.paper} first, then papers similar to it"
    if fits:
        return spelling_note(reading)
    return NOTHING_FITS if page and leading is None else ""


def _leading_paper(
    workspace: Workspace,
    reading: QueryReading,
    ranking: Sequence[RankedPaper],
    options: SearchOptions,
) -> RankedPaper | None:
    """The paper that the query names, if the corpus holds it and no filter excludes it."""
    if reading.paper is None or not reading.text:
        return None
    for paper in ranking:
        if paper.arxiv_id == reading.paper:
            return replace(paper, relevance="strong")
    own = own_passages(workspace, reading.paper, reading.text, options)
    if not own:
        return None
    score = max((paper.score for paper in ranking), default=1.0)
    passages = tuple(best_passages(own, [reading.text]))
    return RankedPaper(reading.paper, score, "strong", passages)


def _hits(workspace: Workspace, papers: Sequence[RankedPaper], query: str) -> tuple[PaperHit, ...]:
    """The papers of a page with what their tables say of them."""
    ids = [paper.arxiv_id for paper in papers]
    columns = [*PAPER_COLUMNS, "abstract"]
    rows = {
        row["arxiv_id"]: row for row in rows_of_papers(workspace.root, tables.PAPERS, ids, columns)
    }
    cited_by = count_citing_papers(workspace, ids) if ids else {}
    hits = []
    for ranked in papers:
        passages = [Hit.of(scored) for scored in ranked.passages]
        row = rows.get(ranked.arxiv_id)
        if row is None:  # its month is being made anew
            first = passages[0]
            paper = Paper(first.arxiv_id, first.title, (), None, first.categories)
            abstract = ""
        else:
            paper = Paper.from_row(row)
            abstract = row["abstract"] or ""
        hits.append(
            PaperHit(
                arxiv_id=paper.arxiv_id,
                title=paper.title,
                authors=paper.authors,
                year=paper.year,
                month=paper.month,
                categories=paper.categories,
                url=paper.url,
                abstract=_first_sentences(abstract),
                passages=tuple(rank_sentences(query, passages)),
                cited_by=cited_by.get(paper.arxiv_id, 0),
                bibtex=bibtex_of([paper]),
                relevance=ranked.relevance,
                score=ranked.score,
            )
        )
    return tuple(hits)


def _first_sentences(abstract: str) -> str:
    """The first sentences of an abstract, at least one."""
    first: list[str] = []
    length = 0
    for sentence in split_sentences(without_known_markers(abstract)):
        length += len(sentence)
        if first and length > _ABSTRACT:
            return f"{' '.join(first)} …"
        first.append(sentence)
    return " ".join(first)
