"""Queries as people type them: an identifier gives its paper, misspelt words are corrected."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pipeline import tables
from pipeline.corpus.references.citation_index import CitingPaper, read_citing_papers
from pipeline.errors import CiteloomError
from pipeline.index.papers import rows_of_papers
from pipeline.index.query_identifiers import arxiv_id_of, doi_of, paper_with_doi
from pipeline.index.scored import IndexedPassage, Scored
from pipeline.index.search import search_many
from pipeline.index.search_options import SearchOptions, check_query
from pipeline.index.vocabulary import corrected
from pipeline.text import one_line

if TYPE_CHECKING:
    from pipeline.engine.stage import Workspace

_log = logging.getLogger(__name__)

# The passage that stands for a paper: its abstract, or else its title and authors.
_LEADING = {"abstract": 0, "front_matter": 1}
_CANDIDATES = 50
_CITING_NAMED = 5


@dataclass(frozen=True, slots=True)
class TypedResults:
    """The passages of a query, best first, and how the query was read.

    text: what was searched for. paper: arXiv id of the paper that the query names; its abstract or
    front matter comes first, and then what is similar. note: for the reader; empty for an ordinary
    search. cited_by: who cites the named paper, where the corpus does not hold it.
    """

    text: str
    passages: Sequence[Scored[IndexedPassage]] = ()
    paper: str | None = None
    cited_by: tuple[CitingPaper, ...] = ()
    note: str = ""


def search_typed(
    workspace: Workspace, queries: Sequence[str], options: SearchOptions
) -> list[TypedResults]:
    """The results of each query. Raises as `search.search` does."""
    options = options.checked()
    for number, query in enumerate(queries, 1):
        check_query(query, f"query {number}" if len(queries) > 1 else "the query")
    named = {
        query: results
        for query in dict.fromkeys(queries)
        if (results := _search_identifier(workspace, query, options)) is not None
    }
    typed = [query for query in dict.fromkeys(queries) if query not in named]
    texts = [_well_spelt(workspace, query) for query in typed]
    rankings = search_many(workspace, texts, options, typed)
    by_query = dict(named)
    for query, text, ranking in zip(typed, texts, rankings, strict=True):
        helps = text != query and any(scored.fits for scored in ranking)
        note = f"showing results for: {one_line(text)}" if helps else ""
        by_query[query] = TypedResults(text, ranking, note=note)
    return [by_query[query] for query in queries]


def _well_spelt(workspace: Workspace, query: str) -> str:
    """The query with its misspelt words corrected; as it is where the vocabulary cannot be read."""
    try:
        return corrected(workspace, query) or query
    except CiteloomError as error:
        _log.warning("misspelt words are not corrected: %s", error)
        return query


def _search_identifier(
    workspace: Workspace, query: str, options: SearchOptions
) -> TypedResults | None:
    """The results of a query that is an identifier; None if it is not one."""
    arxiv_id, doi = arxiv_id_of(query), doi_of(query)
    if arxiv_id is None and doi is not None:
        arxiv_id = paper_with_doi(workspace, doi)
        if arxiv_id is None:
            return TypedResults(query, note=f"the metadata of this corpus has no DOI {doi}")
    if arxiv_id is None:
        return None
    for row in rows_of_papers(workspace.root, tables.PAPERS, [arxiv_id], ["title", "abstract"]):
        text = "\n".join(filter(None, (row["title"], row["abstract"])))
        return _search_paper(workspace, arxiv_id, text or query, options)
    return _absent_paper(workspace, query, arxiv_id)


def _search_paper(
    workspace: Workspace, arxiv_id: str, text: str, options: SearchOptions
) -> TypedResults:
    """A paper's leading passage, and then passages of other papers that are like the paper."""
    wanted = replace(
        options, papers=(arxiv_id,), limit=_CANDIDATES, offset=0, per_paper=False, rerank="none"
    )
    own = search_many(workspace, [text], wanted)[0]
    leading = min(
        own, key=lambda scored: _LEADING.get(scored.item.kind, len(_LEADING)), default=None
    )
    # The leading passage is number 1 of the results; those of other papers follow it.
    before = 0 if leading is None else 1
    offset = max(options.offset - before, 0)
    limit = options.end - before - offset
    others = []
    if limit > 0:
        similar = replace(
            options,
            offset=offset,
            limit=limit,
            without_papers=(*options.without_papers, arxiv_id),
        )
        others = search_many(workspace, [text], similar)[0]
    if leading is None:
        note = f"no passage of {arxiv_id} is indexed within these filters; passages similar to it"
        return TypedResults(text, others, arxiv_id, note=note)
    passages = others
    if options.offset == 0:
        score = max([leading.score, *(scored.score for scored in others)])
        passages = [Scored(leading.item, score, "strong"), *others]
    note = f"{arxiv_id} first, then passages similar to it"
    return TypedResults(text, passages, arxiv_id, note=note)


def _absent_paper(workspace: Workspace, query: str, arxiv_id: str) -> TypedResults:
    """The results for a paper that the corpus does not hold: who cites it."""
    citing = tuple(read_citing_papers(workspace, arxiv_id))
    note = f"{arxiv_id} is not in this corpus, and no paper of it cites {arxiv_id}"
    if citing:
        names = [f"{one_line(paper.title)} ({paper.arxiv_id})" for paper in citing[:_CITING_NAMED]]
        more = f", and {len(citing) - _CITING_NAMED} more" if len(citing) > _CITING_NAMED else ""
        note = f"{arxiv_id} is not in this corpus; it is cited by {', '.join(names)}{more}"
    return TypedResults(query, paper=arxiv_id, cited_by=citing, note=note)
