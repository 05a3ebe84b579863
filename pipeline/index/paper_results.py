"""Search for papers: a page of them for each query, each with its best passages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from typing import TYPE_CHECKING

from pipeline import tables
from pipeline.corpus.citation_formats import bibtex_of
from pipeline.corpus.nouns import PAPER_COLUMNS, Paper
from pipeline.corpus.parse.policies import without_known_markers
from pipeline.corpus.passages.sentences import split_sentences
from pipeline.corpus.passages.text import embedded_text
from pipeline.corpus.references.citation_index import CitingPaper, count_citing_papers
from pipeline.index.excerpts import RankedPassage, rank_sentences
from pipeline.index.papers import rows_of_papers
from pipeline.index.scored import Hit, IndexedPassage, Scored
from pipeline.index.search import PaperRankings, QueryBatch, batches, coverage
from pipeline.index.search_options import SearchOptions, check_queries
from pipeline.index.typed_query import TypedQuery, read_example, read_query

if TYPE_CHECKING:
    from pipeline.engine.stage import Workspace
    from pipeline.index.passage_index import ScoredPoint

_PASSAGES_SHOWN = 2
# Passages of a paper among which the best are chosen by their own words.
_PASSAGES_READ = 5
# Weight of the share of the query's words that a passage has without its paper's title.
_OWN_WORDS = 0.4
# Kinds of passages that every result shows of its paper.
_OF_EVERY_RESULT = ("abstract", "front_matter")
# Characters of an abstract that a result shows, in whole sentences.
_ABSTRACT = 320


@dataclass(frozen=True, slots=True)
class PaperHit:
    """A paper that a search returns.

    abstract: its first sentences. passages: its best ones for the query, at most two. cited_by: how
    many papers of the corpus cite it. fits: whether one of its passages fits the query. score:
    comparable only within one search. url: its page on arXiv.
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
    fits: bool
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
    it, cited_by are the papers that cite it. fits: whether any of the first page's papers fits the
    query; if not, they are the nearest ones. first: number of the page's first paper. has_more:
    whether a next page has papers. note: all of this in words; empty for an ordinary search.
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
    workspace: Workspace, queries: Sequence[str], options: SearchOptions
) -> list[SearchResults]:
    """A page of papers for each query. limit and offset of the options count papers. Raises as
    `search.search` does.
    """
    options = options.checked()
    check_queries(queries)
    with workspace.read_cache():
        return _pages(workspace, [read_query(workspace, query, options) for query in queries])


def papers_like(workspace: Workspace, identifier: str, options: SearchOptions) -> SearchResults:
    """A page of the papers that are like a paper (arXiv id) or a passage (its id). Raises
    SettingError for an unknown id, and as `search.search` does.
    """
    with workspace.read_cache():
        query = read_example(workspace, identifier, options.checked())
        return _pages(workspace, [query])[0]


def _pages(workspace: Workspace, queries: Sequence[TypedQuery]) -> list[SearchResults]:
    """The pages of queries, in their order."""
    pages = {
        query.typed: SearchResults(
            query.typed, named=query.paper, cited_by=query.cited_by, note=query.note
        )
        for query in queries
    }
    for batch, group in batches(workspace, queries):
        numbers = range(len(group))
        first, end = batch.options.offset, batch.options.end
        rankings = [
            _led_by_named(batch, number, group[number].paper, ranking)
            for number, ranking in enumerate(
                PaperRankings(batch, _PASSAGES_READ).up_to(numbers, end + 1)
            )
        ]
        points = [list(chain.from_iterable(ranking[first:end])) for ranking in rankings]
        passages = batch.passages(numbers, points)
        for query, ranking, found in zip(group, rankings, passages, strict=True):
            fits = query.fits(found, first)
            pages[query.typed] = SearchResults(
                query=query.typed,
                papers=_hits(workspace, query.text, found),
                searched=query.text if query.is_corrected else None,
                named=query.paper,
                fits=fits,
                first=first + 1,
                has_more=len(ranking) > end,
                note=query.note_on(fits=fits),
            )
    return [pages[query.typed] for query in queries]


def _led_by_named(
    batch: QueryBatch, number: int, paper: str | None, ranking: list[list[ScoredPoint]]
) -> list[list[ScoredPoint]]:
    """The papers with the one first that the query names."""
    own = batch.of_paper(number, paper)[:_PASSAGES_READ] if paper else []
    others = [points for points in ranking if points[0].payload["arxiv_id"] != paper]
    return [own, *others] if own else ranking


def _best_passages(
    query: str, passages: Sequence[Scored[IndexedPassage]]
) -> list[Scored[IndexedPassage]]:
    """The passages of a paper to show, those first whose own words, without the paper's title, fit
    the query.

    Abstract and front matter are shown only of a paper that has nothing else.
    """

    def fit(scored: Scored[IndexedPassage]) -> float:
        passage = scored.item
        own = embedded_text("", passage.section_path, passage.text)
        return scored.score + _OWN_WORDS * coverage(query, own)

    ordered = sorted(passages, key=fit, reverse=True)
    others = [scored for scored in ordered if scored.item.kind not in _OF_EVERY_RESULT]
    return (others or ordered)[:_PASSAGES_SHOWN]


def _hits(
    workspace: Workspace, query: str, passages: Sequence[Scored[IndexedPassage]]
) -> tuple[PaperHit, ...]:
    """The papers of passages, which are sorted by paper, with what their tables say of them."""
    by_paper = {
        paper: list(group)
        for paper, group in groupby(passages, lambda scored: scored.item.arxiv_id)
    }
    columns = [*PAPER_COLUMNS, "abstract"]
    rows = {
        row["arxiv_id"]: row
        for row in rows_of_papers(workspace.root, tables.PAPERS, by_paper.keys(), columns)
    }
    cited_by = count_citing_papers(workspace, by_paper.keys()) if by_paper else {}
    hits = []
    for arxiv_id, of_paper in by_paper.items():
        first, row = of_paper[0], rows.get(arxiv_id)
        if row is None:  # its month is being made anew
            paper = Paper(arxiv_id, first.item.title, (), None, first.item.categories)
        else:
            paper = Paper.from_row(row)
        best = [Hit.of(scored) for scored in _best_passages(query, of_paper)]
        hits.append(
            PaperHit(
                arxiv_id=arxiv_id,
                title=paper.title,
                authors=paper.authors,
                year=paper.year,
                month=paper.month,
                categories=paper.categories,
                url=paper.url,
                abstract=_first_sentences((row and row["abstract"]) or ""),
                passages=tuple(rank_sentences(query, best)),
                cited_by=cited_by.get(arxiv_id, 0),
                bibtex=bibtex_of([paper]),
                fits=any(scored.fits for scored in of_paper),
                score=first.score,
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
