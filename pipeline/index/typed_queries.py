"""Queries as people type them: an identifier gives its paper, misspelt words are corrected."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pipeline import tables
from pipeline.arxiv.titles import title_words
from pipeline.corpus.references.citation_index import CitingPaper, read_citing_papers
from pipeline.errors import CiteloomError
from pipeline.index.paper_names import paper_named
from pipeline.index.papers import rows_of_papers
from pipeline.index.query_identifiers import arxiv_id_of, doi_of, paper_with_doi
from pipeline.index.scored import IndexedPassage, Scored
from pipeline.index.search import search_many
from pipeline.index.search_options import MOST, SearchOptions, check_queries
from pipeline.index.vocabulary import corrected
from pipeline.text import one_line

if TYPE_CHECKING:
    from pipeline.engine.stage import Workspace

_log = logging.getLogger(__name__)

# The passage that stands for a paper: its abstract, or else its title and authors.
_LEADING = {"abstract": 0, "front_matter": 1}
_CANDIDATES = 50
_CITING_NAMED = 5
_WORDS_OF_NAME = 4
# Passages among which a phrase is looked for.
_TOP = 10


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
    check_queries(queries)
    by_query: dict[str, TypedResults] = {}
    for query in dict.fromkeys(queries):
        results = _search_identifier(workspace, query, options)
        if results is not None:
            by_query[query] = results
    others = [query for query in dict.fromkeys(queries) if query not in by_query]
    names = [query for query in others if _may_be_name(query, options)]
    # A leading passage moves the others: these pages are cut from the whole ranking.
    whole = replace(options, offset=0, limit=options.end + 1) if names else options
    by_query |= _search_texts(workspace, names, whole)
    for query in names:
        by_query[query] = _led_by_paper(workspace, query, by_query[query], options)
    by_query |= _search_texts(
        workspace, [query for query in others if query not in by_query], options
    )
    return [by_query[query] for query in queries]


def _search_texts(
    workspace: Workspace, typed: Sequence[str], options: SearchOptions
) -> dict[str, TypedResults]:
    """The results of queries, with their misspelt words corrected."""
    texts = [_well_spelt(workspace, query) for query in typed]
    rankings = search_many(workspace, texts, options, typed)
    results = {}
    for query, text, ranking in zip(typed, texts, rankings, strict=True):
        helps = text != query and any(scored.fits for scored in ranking)
        note = f"showing results for: {one_line(text)}" if helps else ""
        results[query] = TypedResults(text, ranking, note=note)
    return results


def _well_spelt(workspace: Workspace, query: str) -> str:
    """The query with its misspelt words corrected; as it is where the vocabulary cannot be read."""
    try:
        return corrected(workspace, query) or query
    except CiteloomError as error:
        _log.warning("misspelt words are not corrected: %s", error)
        return query


def _may_be_name(query: str, options: SearchOptions) -> bool:
    """Whether a query is as short as a name, and the search is for any passage."""
    is_plain = options.by == "fused" and options.rerank == "none" and not options.kinds
    return is_plain and options.end < MOST and len(title_words(query)) <= _WORDS_OF_NAME


def _led_by_paper(
    workspace: Workspace, query: str, results: TypedResults, options: SearchOptions
) -> TypedResults:
    """The results with the abstract of the paper that the query names first, cut to the page.

    results: from the first on. Such is the paper that introduces the name, or else the best one, if
    its best passages have the query as a phrase.
    """
    passages = list(results.passages)
    paper = _paper_named(workspace, query)
    if paper is None and results.text != query:
        paper = _paper_named(workspace, results.text)
    paper = paper or _paper_of_phrase(results.text, passages)
    text = paper and _text_of_paper(workspace, paper)
    leading = paper and text and _leading_passage(workspace, paper, text, options)
    if leading:
        first = leading.item
        passages = [
            scored
            for scored in passages
            if scored.item.passage_id != first.passage_id
            and not (options.per_paper and scored.item.arxiv_id == first.arxiv_id)
        ]
        score = max((scored.score for scored in passages), default=1.0)
        passages.insert(0, Scored(first, score, "strong"))
    return replace(results, passages=passages[options.offset : options.end])


def _paper_named(workspace: Workspace, name: str) -> str | None:
    """The paper that introduces a name; None where the names cannot be read."""
    try:
        return paper_named(workspace, name)
    except CiteloomError as error:
        _log.warning("names of methods are not looked up: %s", error)
        return None


def _paper_of_phrase(text: str, passages: Sequence[Scored[IndexedPassage]]) -> str | None:
    """The paper of the first passage, if one of its passages at the top has the query's words in a
    row.
    """
    phrase = f" {' '.join(title_words(text))} "
    if not passages or not passages[0].fits:
        return None
    best = passages[0].item.arxiv_id
    for scored in passages[:_TOP]:
        passage = scored.item
        words = title_words(f"{passage.title} {' '.join(passage.section_path)} {passage.text}")
        if passage.arxiv_id == best and phrase in f" {' '.join(words)} ":
            return best
    return None


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
    text = _text_of_paper(workspace, arxiv_id)
    if text is None:
        return _absent_paper(workspace, query, arxiv_id)
    return _search_paper(workspace, arxiv_id, text, options)


def _text_of_paper(workspace: Workspace, arxiv_id: str) -> str | None:
    """A paper's title and abstract; None if the corpus does not hold it."""
    for row in rows_of_papers(workspace.root, tables.PAPERS, [arxiv_id], ["title", "abstract"]):
        return "\n".join(filter(None, (row["title"], row["abstract"]))) or arxiv_id
    return None


def _leading_passage(
    workspace: Workspace, arxiv_id: str, text: str, options: SearchOptions
) -> Scored[IndexedPassage] | None:
    """The passage that stands for a paper, or else its best one; None if the options leave the
    paper out. text: as `_text_of_paper` returns it.
    """
    if arxiv_id in options.without_papers:
        return None
    wanted = replace(
        options, papers=(arxiv_id,), limit=_CANDIDATES, offset=0, per_paper=False, rerank="none"
    )
    # By words alone: to read a whole abstract, the model takes longer than the rest of a search.
    own = search_many(workspace, [text], replace(wanted, by="lexical"))[0]
    if not own:
        own = search_many(workspace, [text], wanted)[0]
    return min(own, key=lambda scored: _LEADING.get(scored.item.kind, len(_LEADING)), default=None)


def _search_paper(
    workspace: Workspace, arxiv_id: str, text: str, options: SearchOptions
) -> TypedResults:
    """A paper's leading passage, and then passages of other papers that are like the paper."""
    leading = _leading_passage(workspace, arxiv_id, text, options)
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
        score = max((scored.score for scored in others), default=1.0)
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
