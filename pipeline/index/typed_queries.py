"""Queries as people type them: an identifier or a name gives its paper, misspelt words are
corrected.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from pipeline.arxiv.identifiers import arxiv_id_of, arxiv_ids_among_words, doi_of
from pipeline.arxiv.titles import doi_key, title_words
from pipeline.corpus.paper_index import papers_with_ids
from pipeline.corpus.references.citation_index import (
    CitingPaper,
    read_citing_papers,
    read_papers_citing_doi,
)
from pipeline.corpus.references.lookups import metadata_titles
from pipeline.corpus.references.title_index import TitleIndex
from pipeline.errors import CiteloomError
from pipeline.index.author_queries import AuthorQuery, read_author_query
from pipeline.index.paper_names import paper_named
from pipeline.index.papers import read_like, text_of_paper
from pipeline.index.search_options import SearchOptions, check_length
from pipeline.index.vocabulary import corrected
from pipeline.text import one_line

if TYPE_CHECKING:
    from pipeline.engine.stage import Workspace

_log = logging.getLogger(__name__)

Result = TypeVar("Result")

_CITING_NAMED = 5
_WORDS_OF_NAME = 4
# What people type around a name: "what is X", "the X paper", "X github".
_AROUND_NAME = re.compile(
    r"^(?:what(?:'s|’s| is| are)|the|paper (?:on|about))\s|"
    r"\s(?:paper|article|arxiv|pdf|github|code|repo|repository|method|model|algorithm)$|\?$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class QueryReading:
    """What a query means.

    text: what to search for; empty for nothing. paper: arXiv id of the paper that comes first,
    because the query is its identifier or name; without text, the id or DOI of one that the corpus
    does not hold, and cited_by who cites it.
    without: a paper that is left out of what the index finds, since text is its own. author: whose
    name the query is. note: for the reader, where the query is not an ordinary one.
    """

    typed: str
    text: str
    paper: str | None = None
    cited_by: tuple[CitingPaper, ...] = ()
    without: str | None = None
    author: AuthorQuery | None = None
    note: str = ""

    @property
    def is_corrected(self) -> bool:
        """Whether words are spelt otherwise than typed, and not only left out."""
        is_changed = not set(title_words(self.text)) <= set(title_words(self.typed))
        return is_changed and self.without is None

    @property
    def as_typed(self) -> str:
        """The words as typed, which count beside the corrected ones."""
        return self.typed if self.is_corrected else self.text


def read_query(workspace: Workspace, query: str, options: SearchOptions) -> QueryReading:
    """What a query means: an identifier, or words with their spelling corrected.

    Raises SettingError for a query that is too long.
    """
    check_length(query, "the query")
    arxiv_id, doi = arxiv_id_of(query), doi_of(query)
    if arxiv_id is None and doi is not None:
        citing: Sequence[CitingPaper] = ()
        arxiv_id = paper_with_doi(workspace, doi)
        if arxiv_id is None:
            arxiv_id, citing = read_papers_citing_doi(workspace, doi)
        if arxiv_id is None:
            return _absent_paper(query, doi, citing)
    if arxiv_id is not None:
        text = text_of_paper(workspace, arxiv_id)
        if text is None:
            return _absent_paper(query, arxiv_id, read_citing_papers(workspace, arxiv_id))
        return QueryReading(query, text, arxiv_id, without=arxiv_id)
    bare = _without_words_around(query)
    if bare not in (query, query.lower()) and " " not in bare:
        return replace(read_query(workspace, bare, options), typed=query)
    text = query if options.as_typed else well_spelt(workspace, query)
    paper = _paper_among_words(workspace, query)
    if may_be_name(bare, options):
        for name in dict.fromkeys([query, text, bare]):
            paper = paper or _paper_named(workspace, name)
    author = None
    if paper is None:
        author = _looked_up(
            lambda: read_author_query(workspace, query, options), "authors are not looked up"
        )
    return QueryReading(query, text, paper, author=author)


def paper_with_doi(workspace: Workspace, doi: str) -> str | None:
    """The arXiv id of the paper whose metadata has this published DOI, in lower case."""
    with metadata_titles(workspace).open() as connection:
        for _, papers in TitleIndex(connection).candidates({0: [doi_key(doi)]}):
            for paper in papers:
                if doi in paper.dois.split():
                    return paper.arxiv_id
    return None


def read_example(workspace: Workspace, identifier: str) -> QueryReading:
    """A search for what is like a paper or a passage, without that paper. Raises as `read_like`
    does.
    """
    text, paper = read_like(workspace, identifier)
    return QueryReading(identifier, text, without=paper)


def may_be_name(query: str, options: SearchOptions) -> bool:
    """Whether a query is as short as a name, and the search is for any passage."""
    is_plain = options.by == "fused" and not options.kinds
    return is_plain and len(title_words(query)) <= _WORDS_OF_NAME


def _without_words_around(name: str) -> str:
    """A name without what people type around it."""
    bare = _AROUND_NAME.sub("", name.strip()).strip()
    return bare if bare == name else _without_words_around(bare)


def spelling_note(reading: QueryReading) -> str:
    """The note on corrected words; empty if none are."""
    return f"showing results for: {one_line(reading.text)}" if reading.is_corrected else ""


def well_spelt(workspace: Workspace, query: str) -> str:
    """The query with its misspelt words corrected; as it is where the vocabulary cannot be read."""
    better = _looked_up(lambda: corrected(workspace, query), "misspelt words are not corrected")
    return better or query


def _looked_up(lookup: Callable[[], Result | None], if_not: str) -> Result | None:
    """The result of a lookup; None, and a warning, where its index cannot be read."""
    try:
        return lookup()
    except CiteloomError as error:
        _log.warning("%s: %s", if_not, error)
        return None


def _paper_among_words(workspace: Workspace, query: str) -> str | None:
    """The first paper of the corpus whose arXiv id is among the words of a query."""
    arxiv_ids = arxiv_ids_among_words(query)
    papers = papers_with_ids(workspace, arxiv_ids) if arxiv_ids else {}
    return next((arxiv_id for arxiv_id in arxiv_ids if arxiv_id in papers), None)


def _paper_named(workspace: Workspace, name: str) -> str | None:
    return _looked_up(lambda: paper_named(workspace, name), "names of methods are not looked up")


def _absent_paper(query: str, identifier: str, citing: Sequence[CitingPaper]) -> QueryReading:
    """The reading of a query for a paper that the corpus does not hold, with who cites it."""
    note = f"{identifier} is not in this corpus, and no paper of it cites {identifier}"
    if citing:
        names = [f"{one_line(paper.title)} ({paper.arxiv_id})" for paper in citing[:_CITING_NAMED]]
        more = f", and {len(citing) - _CITING_NAMED} more" if len(citing) > _CITING_NAMED else ""
        note = f"{identifier} is not in this corpus; it is cited by {', '.join(names)}{more}"
    return QueryReading(query, "", identifier, cited_by=tuple(citing), note=note)
