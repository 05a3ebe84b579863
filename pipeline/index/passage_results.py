"""Search for passages alone, as people type queries: `citeloom search --passages`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.corpus.references.citation_index import CitingPaper
from pipeline.identity.titles import title_words
from pipeline.index.scored import Hit, Hits
from pipeline.index.search import QueryBatch, batches
from pipeline.index.search_options import SearchOptions, check_queries
from pipeline.index.typed_query import TypedQuery, read_example, read_query

if TYPE_CHECKING:
    from pipeline.engine.stage import Workspace
    from pipeline.index.passage_index import ScoredPoint

# The passage that stands for a paper: its abstract, or else its title and authors.
_LEADING = {"abstract": 0, "front_matter": 1}
# A query of so few words is led by the abstract of its first paper, since it may be a name.
_WORDS_OF_NAME = 4


@dataclass(frozen=True, slots=True)
class PassageRanking:
    """The passages of a query, best first, and how the query was read.

    text: what was searched for. named: arXiv id of the paper that the query names; its abstract or
    front matter comes first, or, where the corpus does not hold it, cited_by are the papers that
    cite it.
    """

    text: str
    hits: Hits
    named: str | None = None
    cited_by: tuple[CitingPaper, ...] = ()


def search_passages(
    workspace: Workspace, queries: Sequence[str], options: SearchOptions
) -> list[PassageRanking]:
    """The results of each query. Raises as `search.search` does."""
    options = options.checked()
    check_queries(queries)
    with workspace.read_cache():
        return _rankings(workspace, [read_query(workspace, query, options) for query in queries])


def passages_like(workspace: Workspace, identifier: str, options: SearchOptions) -> PassageRanking:
    """The passages of other papers that are like a paper or a passage. Raises SettingError for an
    unknown id, and as `search_passages` does.
    """
    with workspace.read_cache():
        query = read_example(workspace, identifier, options.checked())
        return _rankings(workspace, [query])[0]


def _rankings(workspace: Workspace, queries: Sequence[TypedQuery]) -> list[PassageRanking]:
    """The passages of queries, in their order."""
    rankings = {
        query.typed: PassageRanking("", Hits(note=query.note), query.paper, query.cited_by)
        for query in queries
    }
    for batch, group in batches(workspace, queries):
        numbers = range(len(group))
        first, end = batch.options.offset, batch.options.end
        points = [
            _led_by_abstract(batch, number, group[number], ranking)[first:end]
            for number, ranking in enumerate(batch.rank(numbers, batch.options.depth()))
        ]
        for query, passages in zip(group, batch.passages(numbers, points), strict=True):
            fits = query.fits(passages, first)
            hits = Hits(map(Hit.of, passages), fits=fits, note=query.note_on(fits=fits))
            rankings[query.typed] = PassageRanking(query.text, hits, query.paper)
    return [rankings[query.typed] for query in queries]


def _led_by_abstract(
    batch: QueryBatch, number: int, query: TypedQuery, ranking: list[ScoredPoint]
) -> list[ScoredPoint]:
    """The passages with the abstract first of the paper that the query names, or may name."""
    paper = query.paper
    if paper is None and ranking and len(title_words(query.text)) <= _WORDS_OF_NAME:
        paper = ranking[0].payload["arxiv_id"]
    own = batch.of_paper(number, paper) if paper else []
    if not own:
        return ranking
    first = min(own, key=lambda point: _LEADING.get(point.payload["kind"], len(_LEADING)))
    return [first, *(point for point in ranking if point.passage_id != first.passage_id)]
