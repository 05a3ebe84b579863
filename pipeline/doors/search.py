"""Search as people type queries: a page of papers, each with its best passages, or of passages."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import chain, groupby
from typing import TYPE_CHECKING, Literal

from pipeline.corpus.nouns import Hit, Passage, Reason, Results
from pipeline.doors.query import TypedQuery, read_example, read_query
from pipeline.identity.titles import title_words
from pipeline.index.excerpts import with_excerpts
from pipeline.index.opening import live_index
from pipeline.index.papers import papers_of
from pipeline.index.scored import Scored
from pipeline.index.search import PaperRankings, QueryBatch, coverage, own_words, search_many
from pipeline.index.search_options import SearchOptions, check_queries

if TYPE_CHECKING:
    from pipeline.engine.stage import Workspace
    from pipeline.index.passage_index import ScoredPoint

Of = Literal["papers", "passages"]

_PASSAGES_SHOWN = 2
# Passages of a paper among which the best are chosen by their own words.
_PASSAGES_READ = 5
# Weight of the share of the query's words that a passage has without its paper's title.
_OWN_WORDS = 0.4
# Kinds of passages that every result shows of its paper. One of them stands for the paper in a list
# of passages: the abstract, or else title and authors.
_LEADING = {"abstract": 0, "front_matter": 1}
# Passages for a query of so few words are led by the abstract of the first one's paper, since the
# query may be a name.
_WORDS_OF_NAME = 4


def search(
    workspace: Workspace, queries: Sequence[str], options: SearchOptions, of: Of = "papers"
) -> list[Results]:
    """A page of results for each query. limit and offset of the options count papers, or passages.
    Raises as `pipeline.index.search.search` does.
    """
    options = options.checked()
    check_queries(queries)
    with workspace.read_cache():
        return _pages(workspace, [_read(workspace, query, options) for query in queries], of)


def _read(workspace: Workspace, typed: str, options: SearchOptions) -> TypedQuery:
    """What a typed text means; its words stay as they are if nothing fits the corrected ones."""
    query = read_query(workspace, typed, options)
    if query.is_corrected:
        (found,) = search_many(workspace, [query.text], replace(options, offset=0))
        if not query.fits(found, 0):
            return read_query(workspace, typed, replace(options, as_typed=True))
    return query


def search_sentences(
    workspace: Workspace, sentences: Sequence[str], limit: int, without: Collection[str] = ()
) -> list[list[Hit]]:
    """For each sentence, read as it is, the papers whose best passages fit it, best first, then the
    nearest of the others.

    without: arXiv ids that are left out. Raises as `search` does.
    """
    options = SearchOptions(limit=limit + len(without), per_paper=True)
    hits = []
    for ranking in search_many(workspace, sentences, options):
        others = [each for each in ranking if each.item.arxiv_id not in without]
        others.sort(key=lambda each: not each.fits)
        papers = papers_of(workspace, [scored.item for scored in others[:limit]])
        hits.append([
            Hit(paper, scored.score, "fits" if scored.fits else "nearest", (scored.item,))
            for paper, scored in zip(papers, others, strict=False)
        ])  # fmt: skip
    return hits


def search_like(
    workspace: Workspace, identifier: str, options: SearchOptions, of: Of = "papers"
) -> Results:
    """A page of what is like a paper (arXiv id) or a passage (its id), without its paper. Raises
    SettingError for an unknown id, and as `search` does.
    """
    with workspace.read_cache():
        query = read_example(workspace, identifier, options.checked())
        return _pages(workspace, [query], of)[0]


def _pages(workspace: Workspace, queries: Sequence[TypedQuery], of: Of) -> list[Results]:
    """The pages of queries, in their order."""
    pages = {
        query.typed: Results(
            query.typed, of, named=query.paper, cited_by=query.cited_by, note=query.note
        )
        for query in queries
    }
    for batch, group in _batches(workspace, queries):
        first, end = batch.options.offset, batch.options.end
        rank = _rank_papers if of == "papers" else _rank_passages
        rankings = rank(batch, group)
        points = [list(chain.from_iterable(ranking[first:end])) for ranking in rankings]
        passages = batch.passages(range(len(group)), points)
        for query, ranking, found in zip(group, rankings, passages, strict=True):
            fits = query.fits(found, first)
            pages[query.typed] = replace(
                pages[query.typed],
                hits=tuple(_hits(workspace, query, found, of)),
                searched=query.text if query.is_corrected else None,
                fits=fits,
                first=first + 1,
                has_more=len(ranking) > end,
                note=query.note_on(fits=fits),
            )
    return [pages[query.typed] for query in queries]


def _batches(
    workspace: Workspace, queries: Sequence[TypedQuery]
) -> Iterator[tuple[QueryBatch, list[TypedQuery]]]:
    """The queries that have a text, in batches of equal options."""
    by_options: dict[SearchOptions, list[TypedQuery]] = {}
    for query in queries:
        if query.text:
            by_options.setdefault(query.options, []).append(query)
    for options, group in by_options.items():
        texts = [query.text for query in group]
        yield QueryBatch(workspace, live_index(workspace), texts, options), group


def _rank_papers(batch: QueryBatch, group: Sequence[TypedQuery]) -> list[list[list[ScoredPoint]]]:
    """For each query papers, each as its best points, one more than the page needs if there are so
    many; the one first that the query names.
    """
    ranked = PaperRankings(batch, _PASSAGES_READ).up_to(range(len(group)), batch.options.end + 1)
    rankings = []
    for number, (query, ranking) in enumerate(zip(group, ranked, strict=True)):
        own = batch.of_paper(number, query.paper)[:_PASSAGES_READ] if query.paper else []
        others = [points for points in ranking if points[0].payload["arxiv_id"] != query.paper]
        rankings.append([own, *others] if own else ranking)
    return rankings


def _rank_passages(batch: QueryBatch, group: Sequence[TypedQuery]) -> list[list[list[ScoredPoint]]]:
    """For each query points, each in a list of its own, as `_rank_papers` has papers; the abstract
    first of the paper that the query names, or may name.
    """
    depth = replace(batch.options, limit=batch.options.limit + 1).depth()
    rankings = []
    for number, ranking in enumerate(batch.rank(range(len(group)), depth)):
        paper = group[number].paper
        if paper is None and ranking and len(title_words(group[number].text)) <= _WORDS_OF_NAME:
            paper = ranking[0].payload["arxiv_id"]
        own = batch.of_paper(number, paper) if paper else []
        leading = sorted(own, key=lambda point: _LEADING.get(point.payload["kind"], len(_LEADING)))
        leading = leading[:1]
        ids = {point.passage_id for point in leading}
        others = [point for point in ranking if point.passage_id not in ids]
        rankings.append([[point] for point in (*leading, *others)])
    return rankings


def _hits(
    workspace: Workspace, query: TypedQuery, found: Sequence[Scored[Passage]], of: Of
) -> Iterator[Hit]:
    """The hits of a page. found: its passages, those of a paper one after another."""
    if of == "papers":
        by_paper = groupby(found, lambda scored: scored.item.arxiv_id)
        groups = [list(group) for _, group in by_paper]
        shown = [with_excerpts(query.text, _best_passages(query.text, group)) for group in groups]
    else:
        groups = [[scored] for scored in found]
        excerpts = with_excerpts(query.text, [scored.item for scored in found])
        shown = [[passage] for passage in excerpts]
    papers = papers_of(workspace, [group[0].item for group in groups])
    for paper, group, passages in zip(papers, groups, shown, strict=True):
        reason: Reason = "fits" if any(scored.fits for scored in group) else "nearest"
        if paper.arxiv_id == query.paper:
            reason = "named"
        yield Hit(paper, group[0].score, reason, tuple(passages))


def _best_passages(query: str, passages: Sequence[Scored[Passage]]) -> list[Passage]:
    """The passages of a paper to show, those first whose own words, without the paper's title, fit
    the query.

    Abstract and front matter are shown only of a paper that has nothing else.
    """

    def fit(scored: Scored[Passage]) -> float:
        return scored.score + _OWN_WORDS * coverage(query, [own_words(scored.item)])

    ordered = [scored.item for scored in sorted(passages, key=fit, reverse=True)]
    others = [passage for passage in ordered if passage.kind not in _LEADING]
    return (others or ordered)[:_PASSAGES_SHOWN]
