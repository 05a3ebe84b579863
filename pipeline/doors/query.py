"""From typed text to a query: an identifier, a DOI or a title gives its paper, the name of an
author that author's papers, and misspelt words are corrected by the words of the corpus.
"""

from __future__ import annotations

import json
import logging
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from rapidfuzz.distance import OSA

from pipeline import tables
from pipeline.corpus.nouns import CitingPaper
from pipeline.corpus.paper_index import (
    authors_named,
    find_papers,
    papers_named,
    papers_with_ids,
)
from pipeline.corpus.references.citation_index import (
    count_citing_papers,
    read_citing_papers,
    read_papers_citing_doi,
)
from pipeline.corpus.references.lookups import metadata_titles
from pipeline.corpus.references.title_index import TitleIndex
from pipeline.embedding.lexical import term_id
from pipeline.embedding.minilm import english_words
from pipeline.engine.month_index import MonthIndex, TableSource
from pipeline.errors import CiteloomError
from pipeline.identity.identifiers import arxiv_id_of, arxiv_ids_among_words, doi_of
from pipeline.identity.people import author_keys
from pipeline.identity.titles import doi_key, title_words
from pipeline.index.papers import read_like, text_of_paper
from pipeline.index.scored import NOTHING_FITS, Scored
from pipeline.index.search_options import SearchOptions, check_length
from pipeline.text import one_line

if TYPE_CHECKING:
    import sqlite3

    from pipeline.engine.stage import Workspace

_log = logging.getLogger(__name__)

_AUTHORS_PRINTED, _CITING_PRINTED = 3, 5
# author:Blei, papers by David Blei, Blei et al. (2017)
_AUTHOR = re.compile(
    r"(?P<mark>author:|(?:papers )?by )?\s?(?P<name>.+?)(?P<others>,? et al\b\.?)?"
    r"(?:,? \(?(?P<year>(?:19|20)\d\d)\)?)?",
    re.IGNORECASE,
)
_WORDS_OF_AUTHOR = 4

_VERSION = 2
# `texts`: in how many texts a word stands. `counts`: the same of each month, as zipped JSON, to be
# subtracted when the month changes; as rows they would take four times as much.
_SCHEMA = """
create table words (word text primary key, texts integer) without rowid;
create table counts (month text primary key, texts blob)
"""
_NEAR_WORDS = """
select word, texts from words where word > ? and word < ? and abs(length(word) - ?) < 2
"""
# Names stand in titles and abstracts, of which all are read: 0.4 s for 5,000. Passages matter in
# small corpora.
_PASSAGES_READ = 2_000
_LONGEST = 40
# Shorter words have too many neighbours, and names have digits or capitals within.
_CORRECTABLE = re.compile(r"(?<!\w)[A-Za-z][a-z]{4,39}(?!\w)")
# A pasted paragraph has enough words that are right.
_MOST_WORDS = 50
# A word of so many texts is right; a rarer one unless a near word stands in so many times more.
_COMMON, _FAR_RARER = 20, 500


@dataclass(frozen=True, slots=True)
class TypedQuery:
    """What a typed text means.

    text: what to search for; empty for nothing. options: of the search, restricted to the authors
    that the text names. paper: arXiv id of the paper that it names, which comes first; without a
    text, the id or DOI of one that the corpus lacks, and cited_by who cites it. is_name: whether it
    names papers or authors, so that what they are fits. corrected: whether words were corrected.
    note: for the reader, where the text is not searched for as it was typed.
    """

    typed: str
    text: str
    options: SearchOptions
    paper: str | None = None
    cited_by: tuple[CitingPaper, ...] = ()
    is_name: bool = False
    is_corrected: bool = False
    note: str = ""

    def fits(self, page: Sequence[Scored[object]], offset: int) -> bool:
        """Whether anything fits: the text is a name, or one of the first page's passages fits it.

        page: the passages behind `offset` others.
        """
        return self.is_name or offset > 0 or any(scored.fits for scored in page)

    def note_on(self, *, fits: bool) -> str:
        """The note, and whether anything fits."""
        return "; ".join(filter(None, [self.note, "" if fits else NOTHING_FITS]))


def read_query(workspace: Workspace, typed: str, options: SearchOptions) -> TypedQuery:
    """What a typed text means; with `options.as_typed`, only identifiers are read.

    Raises SettingError for a text that is too long.
    """
    check_length(typed, "the query")
    query = TypedQuery(typed, typed, options)
    arxiv_id, doi = arxiv_id_of(typed), doi_of(typed)
    if arxiv_id or doi:
        return _read_identifier(workspace, query, arxiv_id, doi or "")
    if options.as_typed:
        return query
    try:
        return (
            _read_name(workspace, query)
            or _read_author(workspace, query)
            or _correct(workspace, query)
        )
    except CiteloomError as error:
        _log.warning("searching for the words as they were typed: %s", error)
        return query


def read_example(workspace: Workspace, identifier: str, options: SearchOptions) -> TypedQuery:
    """The search for what is like a paper or a passage, without its paper. Raises as `read_like`
    does.
    """
    text, paper = read_like(workspace, identifier)
    return TypedQuery(identifier, text, _without(options, paper))


def _without(options: SearchOptions, paper: str) -> SearchOptions:
    return replace(options, without_papers=(*options.without_papers, paper))


def _read_identifier(
    workspace: Workspace, query: TypedQuery, arxiv_id: str | None, doi: str
) -> TypedQuery:
    """The paper of an identifier, and what is like it; who cites it where the corpus lacks it."""
    citing: Sequence[CitingPaper] = ()
    arxiv_id = arxiv_id or paper_with_doi(workspace, doi)
    if arxiv_id is None:
        arxiv_id, citing = read_papers_citing_doi(workspace, doi)
    text = text_of_paper(workspace, arxiv_id) if arxiv_id else None
    if arxiv_id and text:
        options = _without(query.options, arxiv_id)
        note = f"{arxiv_id}, and what is similar to it"
        return replace(query, text=text, options=options, paper=arxiv_id, is_name=True, note=note)
    if arxiv_id:
        citing = read_citing_papers(workspace, arxiv_id)
    paper = arxiv_id or doi
    note = f"{paper} is not in this corpus, and no paper of it cites {paper}"
    if citing:
        papers = [each.paper for each in citing[:_CITING_PRINTED]]
        names = [f"{one_line(each.title)} ({each.arxiv_id})" for each in papers]
        more = len(citing) - len(names)
        listed = f"{', '.join(names)}{f', and {more} more' if more else ''}"
        note = f"{paper} is not in this corpus; it is cited by {listed}"
    return replace(query, text="", paper=paper, cited_by=tuple(citing), is_name=True, note=note)


def paper_with_doi(workspace: Workspace, doi: str) -> str | None:
    """The arXiv id of the paper whose metadata has this published DOI, in lower case."""
    with metadata_titles(workspace).open() as connection:
        for _, papers in TitleIndex(connection).candidates({0: [doi_key(doi)]}):
            for paper in papers:
                if doi in paper.dois.split():
                    return paper.arxiv_id
    return None


def _read_name(workspace: Workspace, query: TypedQuery) -> TypedQuery | None:
    """The first paper whose arXiv id is among the words, or the most cited one whose title they
    are.
    """
    ids = arxiv_ids_among_words(query.typed)
    held = papers_with_ids(workspace, ids) if ids else {}
    papers = [arxiv_id for arxiv_id in ids if arxiv_id in held]
    if not papers:
        papers = papers_named(workspace, query.typed)
        citing = count_citing_papers(workspace, papers) if papers else {}
        papers.sort(key=lambda paper: -citing.get(paper, 0))
    return replace(query, paper=papers[0], is_name=True) if papers else None


def _read_author(workspace: Workspace, query: TypedQuery) -> TypedQuery | None:
    """The papers of the authors whom the words name, by whole name, initials and family name, or
    family name alone, unless that is a word of a title.
    """
    match = _AUTHOR.fullmatch(one_line(query.typed))
    words = title_words(match["name"]) if match else []
    if not match or query.options.authors or len(words) > _WORDS_OF_AUTHOR:
        return None
    authors = authors_named(workspace, match["name"])
    families = [title_words(author_keys(author)[1]) for author in authors]
    if not any(set(family) <= set(words) for family in families):
        return None
    is_marked = match["mark"] or match["others"] or len(words) > 1
    if not is_marked and find_papers(workspace, match["name"], limit=1):
        return None
    options = replace(query.options, authors=(match["name"],))
    note = f"papers of {', '.join(authors) if len(authors) <= _AUTHORS_PRINTED else match['name']}"
    if match["year"]:
        options = replace(options, first_year=int(match["year"]), last_year=int(match["year"]))
        note = f"{note}, {match['year']}"
    return replace(query, options=options, is_name=True, note=note)


@dataclass(frozen=True, slots=True)
class _Texts(TableSource):
    """Titles and abstracts of every month, and a part of its passages."""

    def rows(self, month: str) -> Iterator[Mapping[str, Any]]:
        root = self.workspace.root
        if root.exists(tables.PAPERS, month):
            for row in root.iterate(tables.PAPERS, month, ["title", "abstract"]):
                yield {"text": f"{row['title'] or ''}\n{row['abstract'] or ''}"}
        yield from islice(TableSource.rows(self, month), _PASSAGES_READ)


def vocabulary(workspace: Workspace) -> MonthIndex:
    """The index of the corpus's words, with the number of texts that have each."""
    return MonthIndex(
        workspace=workspace,
        name="vocabulary",
        version=_VERSION,
        schema=_SCHEMA,
        replace_month=_replace_month,
        source=_Texts(workspace, tables.PASSAGES, ["text"]),
    )


def _correct(workspace: Workspace, query: TypedQuery) -> TypedQuery:
    text = well_spelt(workspace, query.typed)
    if text == query.typed:
        return query
    note = f"showing results for: {one_line(text)}"
    return replace(query, text=text, is_corrected=True, note=note)


def well_spelt(workspace: Workspace, text: str) -> str:
    """A text with its misspelt words corrected: those that are neither frequent English nor in the
    corpus, or there far more rarely than a word that is one slip away. Raises as
    `MonthIndex.open` does.
    """
    if len(text.split()) > _MOST_WORDS:
        return text
    with vocabulary(workspace).open() as connection:
        return _CORRECTABLE.sub(lambda word: _right_spelling(connection, word[0]), text)


def _right_spelling(connection: sqlite3.Connection, typed: str) -> str:
    """The most frequent word that one missing, additional or other letter makes of a typed one, or
    two letters in each other's place; the typed one if it is right. The first letter is.
    """
    word = typed.lower()
    stored = connection.execute("select texts from words where word = ?", (word,)).fetchone()
    texts = stored[0] if stored else 0
    if texts >= _COMMON or word in english_words():
        return typed
    of_letter = (word[0], f"{word[0]}~", len(word))
    near = {
        other: count
        for other, count in connection.execute(_NEAR_WORDS, of_letter)
        if OSA.distance(word, other) == 1
    }
    best = max(near, key=lambda other: (near[other], other), default=word)
    is_inflection = any(term_id(other) == term_id(word) for other in near)
    return typed if is_inflection or near.get(best, 0) <= texts * _FAR_RARER else best


def _replace_month(
    connection: sqlite3.Connection, month: str, rows: Iterable[Mapping[str, Any]]
) -> None:
    counts = Counter[str]()
    for row in rows:
        words = set(title_words(row["text"]))
        counts.update(word for word in words if len(word) <= _LONGEST and word.isalpha())
    stored = connection.execute("select texts from counts where month = ?", (month,)).fetchone()
    changes = Counter(counts)
    changes.subtract(json.loads(zlib.decompress(stored[0])) if stored else {})
    connection.executemany(
        "insert into words values (?, ?) on conflict do update set texts = texts + excluded.texts",
        changes.items(),
    )
    connection.execute("delete from words where texts = 0")
    blob = zlib.compress(json.dumps(counts).encode())
    connection.execute("insert or replace into counts values (?, ?)", (month, blob))
