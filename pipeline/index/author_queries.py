"""Authors in searches: names as people write them, in filters and as queries."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pipeline.arxiv.titles import title_words
from pipeline.corpus.paper_index import authors_named, find_papers
from pipeline.index.points import author_keys
from pipeline.index.search_options import SearchOptions
from pipeline.text import one_line

if TYPE_CHECKING:
    from pipeline.engine.stage import Workspace

_MOST_WORDS = 4
_NAMES_PRINTED = 3
# author:Blei, papers by David Blei
_BEFORE = re.compile(r"\A(?:authors?\s?:|(?:papers?\s)?by\s)\s?", re.IGNORECASE)
# Blei et al. (2017)
_AFTER = re.compile(
    r"(?:[\s,]{1,3}et\sal\b\.?)?(?:[\s,]{1,3}\(?((?:19|20)\d\d)[a-z]?\)?)?\.?\Z", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class AuthorQuery:
    """A query that is the name of authors of the corpus.

    options: those of the search, restricted to their papers. is_sure: whether the query can hardly
    mean anything else; a family name alone may be a word. note: for the reader.
    """

    options: SearchOptions
    is_sure: bool
    note: str


def read_author_query(
    workspace: Workspace, query: str, options: SearchOptions
) -> AuthorQuery | None:
    """The authors whom a query names, by whole name, family name, or initials and family name;
    None for another query, and for a search with filters of its own for authors or years.
    """
    if options.authors or options.first_year or options.last_year:
        return None
    written = one_line(query)
    name = _AFTER.sub("", _BEFORE.sub("", written))
    words = title_words(name)
    authors = authors_named(workspace, name) if len(words) <= _MOST_WORDS else []
    families = [title_words(author_keys(author)[1]) for author in authors]
    if not any(set(family) <= set(words) for family in families):
        return None
    restricted = replace(options, authors=(name,))
    note = f"papers of {', '.join(authors) if len(authors) <= _NAMES_PRINTED else name}"
    year = _AFTER.search(written)
    if year and year[1] and find_papers(workspace, "", name, int(year[1]), 1):
        restricted = replace(restricted, first_year=int(year[1]), last_year=int(year[1]))
        note = f"{note}, {year[1]}"
    whole_words = [word for word in words if len(word) > 1]
    return AuthorQuery(restricted, name != written or len(whole_words) > 1, note)


def with_whole_names(workspace: Workspace, options: SearchOptions) -> SearchOptions:
    """The options with each author who is named otherwise than by whole or family name under the
    whole names that fit.
    """
    names: list[str] = []
    for name in options.authors:
        key = " ".join(title_words(name))
        authors = authors_named(workspace, name)
        is_key = any(key in author_keys(author) for author in authors)
        names += [name] if is_key or not authors else authors
    return replace(options, authors=tuple(names))
