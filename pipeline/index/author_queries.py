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
_BEFORE = re.compile(r"(?:authors?\s?:|(?:papers?\s)?by\s)\s?", re.IGNORECASE)
# Blei et al. (2017)
_AFTER = re.compile(
    r"(?:[\s,]{1,3}et\sal\b\.?)?(?:[\s,]{1,3}\(?((?:19|20)\d\d)[a-z]?\)?)?\.?\Z", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class AuthorQuery:
    """A query that is the name of authors of the corpus.

    names: as papers print them. year: in which one of them has a paper. is_sure: whether the
    query can hardly mean anything else; a family name alone may be a word.
    """

    names: tuple[str, ...]
    year: int | None
    is_sure: bool

    def options(self, options: SearchOptions) -> SearchOptions:
        """The options that leave the papers of these authors alone."""
        if self.year is None:
            return replace(options, authors=self.names)
        return replace(options, authors=self.names, first_year=self.year, last_year=self.year)

    @property
    def note(self) -> str:
        """The note for the reader."""
        names = ", ".join(self.names[:_NAMES_PRINTED])
        more = len(self.names) - _NAMES_PRINTED
        others = f" and {more} more" if more > 0 else ""
        return f"papers of {names}{others}{f', {self.year}' if self.year else ''}"


def read_author_query(
    workspace: Workspace, query: str, options: SearchOptions
) -> AuthorQuery | None:
    """The authors whom a query names, by whole name, family name, or initials and family name;
    None for another query, and for a search with filters of its own for authors or years.
    """
    if options.authors or options.first_year or options.last_year:
        return None
    written = one_line(query)
    before = _BEFORE.match(written)
    written = written[before.end() :] if before else written
    after = _AFTER.search(written)
    name = written[: after.start()] if after else written
    words = title_words(name)
    if len(words) > _MOST_WORDS:
        return None
    authors = [
        author
        for author in authors_named(workspace, name)
        if set(title_words(author_keys(author)[1])) <= set(words)
    ]
    if not authors:
        return None
    year = int(after[1]) if after and after[1] else None
    if year and not any(find_papers(workspace, "", author, year, 1) for author in authors):
        year = None
    whole_words = [word for word in words if len(word) > 1]
    is_cited = after is not None and after[0].strip(" .") != ""
    is_sure = before is not None or is_cited or len(whole_words) > 1
    return AuthorQuery(tuple(authors), year, is_sure)


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
