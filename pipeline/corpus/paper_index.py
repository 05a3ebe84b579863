"""The papers of all months, found by words of their titles, by authors or by id."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from rapidfuzz import fuzz, process

from pipeline import tables
from pipeline.corpus.nouns import PAPER_COLUMNS, Paper
from pipeline.engine.month_index import MonthIndex, TableSource
from pipeline.engine.stage import Workspace
from pipeline.errors import SettingError
from pipeline.identity.people import has_name_words
from pipeline.identity.titles import title_words

_VERSION = 4
_SCHEMA = """
create table papers (
    id integer primary key, arxiv_id text, title text, authors text, year integer, categories text,
    abstract text, grade text, subset text
);
create view listed as select id, arxiv_id, title, authors, year, categories from papers;
create index papers_of_arxiv_id on papers (arxiv_id);
create virtual table words using fts5 (
    title, authors, names, tokenize = "unicode61 remove_diacritics 0"
)
"""
# A paper's number in the index: the newest month has the highest ones, and within a month the first
# paper. So the newest papers are found first, and a month's numbers are a range.
_NUMBERS_PER_MONTH = 1_000_000
_BY_WORDS = """
select listed.* from words cross join listed on listed.id = words.rowid
where words match :words and words.rowid between :first and :last order by words.rowid desc
"""
_BY_YEAR = "select * from listed where id between :first and :last order by id desc"
_LISTED_BY_IDS = "select * from listed where arxiv_id in (select value from json_each(?))"
_WHOLE_BY_IDS = "select * from papers where arxiv_id in (select value from json_each(?))"
_AUTHOR_WORDS = """
create virtual table if not exists temp.author_words using fts5vocab (main, words, col)
"""
_AUTHORS_BY_WORDS = """
select papers.authors from words cross join papers on papers.id = words.rowid
where words match ? limit ?
"""
_BY_NAME = """
select listed.* from words cross join listed on listed.id = words.rowid where words match ?
order by arxiv_id
"""
_TITLE_END = re.compile(r"[:?!]\s|\s[-–—]+\s")
# Words of a title and of an author's name that are looked for in a text, at most.
_WORDS_OF_TITLE, _WORDS_OF_AUTHOR = 20, 5
# A name of so many words is a paper's in any case, and a shorter one with the title's capitals.
_WORDS_IN_ANY_CASE = 4
# A name of more papers names none.
_MOST_PAPERS_NAMED = 5
# Similar words for each word of a name, papers whose authors are compared with the name, and the
# least similarity of two names, of 100.
_NEAR_WORDS, _MOST_PAPERS_READ, _LEAST_LIKENESS = 10, 1_000, 70.0


def paper_index(workspace: Workspace) -> MonthIndex:
    """The index of the table `papers`."""
    return MonthIndex(
        workspace=workspace,
        name="papers",
        version=_VERSION,
        schema=_SCHEMA,
        replace_month=_replace_month,
        source=TableSource(workspace, tables.PAPERS, PAPER_COLUMNS),
    )


def find_papers(
    workspace: Workspace,
    title: str = "",
    author: str = "",
    year: int | None = None,
    limit: int | None = 20,
) -> list[Paper]:
    """The papers whose title has these words, in any order, one of whose authors has this name, and
    of this year; all papers where none of the three is given.

    Newest months first. limit: None for no limit. Raises SettingError for a title or an author
    without a word.
    """
    words, names = title_words(title), title_words(author)
    if (title and not words) or (author and not names):
        raise SettingError("give words of a title, or an author's name")
    papers: list[Paper] = []
    terms = [f'title : "{word}"' for word in words] + _author_terms(names)
    parameters = {"words": " AND ".join(terms)} | _numbers_of_year(year)
    with paper_index(workspace).open() as connection:
        rows = connection.execute(_BY_WORDS if terms else _BY_YEAR, parameters)
        for paper in map(_paper_of, rows):
            # The index only knows that the authors together have these names.
            if not names or any(has_name_words(author, names) for author in paper.authors):
                papers.append(paper)
            if len(papers) == limit:
                break
    return papers


def papers_with_ids(
    workspace: Workspace, arxiv_ids: Iterable[str], *, whole: bool = False
) -> dict[str, Paper]:
    """Those of these papers that the corpus holds, by arXiv id. whole: with abstract, grade and
    subset.
    """
    query = _WHOLE_BY_IDS if whole else _LISTED_BY_IDS
    with paper_index(workspace).open() as connection:
        rows = connection.execute(query, (json.dumps(list(arxiv_ids)),)).fetchall()
    papers = map(_paper_of, rows)
    return {paper.arxiv_id: paper for paper in papers}


def papers_named(workspace: Workspace, name: str) -> list[str]:
    """The arXiv ids of the papers whose title, or its part before a colon or dash, is this name,
    sorted. S2-ORC is S2ORC.
    """
    with paper_index(workspace).open() as connection:
        return [paper.arxiv_id for paper in _papers_named(connection, name)]


def papers_named_in(workspace: Workspace, text: str) -> tuple[list[str], list[str]]:
    """The arXiv ids of the papers that a text names by their whole title or its part before a colon
    or dash, in the text's order; and of those by authors whom it names in full, newest first.

    A name of fewer than four words has the title's capitals: CAN is not "can". A name within a
    longer one and a name of many papers name none. Initials may be left out of an author's name,
    which begins and ends with a capital. Raises as `MonthIndex.open` does.
    """
    words = [word.strip(",;:?!()[]“”\".'’") for word in text.split()]
    with paper_index(workspace).open() as connection:
        titled = _look_up_runs(words, _WORDS_OF_TITLE, partial(_papers_titled, connection))
        written = _look_up_runs(words, _WORDS_OF_AUTHOR, partial(_papers_written_by, connection))
    return titled, written


def _look_up_runs(
    words: Sequence[str], most: int, look_up: Callable[[str], list[str]]
) -> list[str]:
    """What `look_up` has of runs of at most so many words, the longest at each place."""
    found: list[str] = []
    start = 0
    while start < len(words):
        for end in range(min(start + most, len(words)), start, -1):
            run = " ".join(words[start:end])
            of_run = look_up(run.removesuffix("'s").removesuffix("’s"))
            if of_run:
                break
        found += of_run
        start = end
    return found


def _papers_titled(connection: sqlite3.Connection, name: str) -> list[str]:
    papers = _papers_named(connection, name)
    if len(papers) > _MOST_PAPERS_NAMED:
        return []
    if len(name.split()) < _WORDS_IN_ANY_CASE:
        printed = _letters(name)
        papers = [paper for paper in papers if printed in map(_letters, _names_of(paper.title))]
    return [paper.arxiv_id for paper in papers]


def _papers_written_by(connection: sqlite3.Connection, name: str) -> list[str]:
    """The papers of the authors of this name, newest first; none for a name of one word."""
    names = _without_initials(name)
    words = name.split()
    if len(names) < 2 or not all(word[:1].isupper() for word in (words[0], words[-1])):
        return []
    parameters = {"words": " AND ".join(_author_terms(names))} | _numbers_of_year(None)
    papers = map(_paper_of, connection.execute(_BY_WORDS, parameters))
    return [paper.arxiv_id for paper in papers if names in map(_without_initials, paper.authors)]


def _without_initials(name: str) -> list[str]:
    return [word for word in title_words(name) if len(word) > 1]


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))


def authors_named(workspace: Workspace, name: str) -> list[str]:
    """The authors whose names have all words and initials of a name, as papers print them, sorted.

    D. Blei, David Blei and Blei, David are David M. Blei.
    """
    words = title_words(name)
    if not words:
        return []
    parameters = (" AND ".join(_author_terms(words)), _MOST_PAPERS_READ)
    with paper_index(workspace).open() as connection:
        rows = connection.execute(_AUTHORS_BY_WORDS, parameters).fetchall()
    authors = {author for (names,) in rows for author in json.loads(names)}
    return sorted(author for author in authors if has_name_words(author, words))


def authors_like(workspace: Workspace, name: str) -> list[str]:
    """The authors whose names are most like a name, best first, as papers print them."""
    words = title_words(name)
    words = [word for word in words if len(word) > 1] or words
    with paper_index(workspace).open() as connection:
        similar_words = _words_of_authors_like(connection, words)
        if not similar_words:
            return []
        alternatives = " OR ".join(f'"{word}"' for word in similar_words)
        parameters = (f"authors : ({alternatives})", _MOST_PAPERS_READ)
        rows = connection.execute(_AUTHORS_BY_WORDS, parameters).fetchall()
    authors = sorted({author for (names,) in rows for author in json.loads(names)})
    likest = process.extract(
        " ".join(words),
        authors,
        scorer=fuzz.partial_ratio,
        processor=_words,
        limit=None,
        score_cutoff=_LEAST_LIKENESS,
    )
    return [author for author, *_ in likest]


def _words_of_authors_like(connection: sqlite3.Connection, words: Sequence[str]) -> list[str]:
    """The words of authors' names that are like any of these words."""
    connection.execute(_AUTHOR_WORDS)
    query = "select term from temp.author_words where col = 'authors'"
    author_words = [term for (term,) in connection.execute(query)]
    similar_words: list[str] = []
    for word in words:
        matches = process.extract(
            word, author_words, scorer=fuzz.ratio, limit=_NEAR_WORDS, score_cutoff=_LEAST_LIKENESS
        )
        similar_words += [similar for similar, *_ in matches]
    return similar_words


def years_of_papers(workspace: Workspace) -> list[int]:
    """The years of the corpus's papers, each once, in order."""
    query = "select distinct year from papers where year is not null order by year"
    with paper_index(workspace).open() as connection:
        return [year for (year,) in connection.execute(query)]


def _papers_named(connection: sqlite3.Connection, name: str) -> list[Paper]:
    key = "".join(title_words(name))
    rows = connection.execute(_BY_NAME, (f'names : "{key}"',)).fetchall() if key else []
    return list(map(_paper_of, rows))


def _names_of(title: str) -> list[str]:
    """What a paper is called: its title, and the title's beginning (S2ORC: The Semantic …)."""
    return [title, _TITLE_END.split(title)[0]]


def _paper_of(row: tuple[Any, ...]) -> Paper:
    _, arxiv_id, title, authors, year, categories, *parts = row
    authors, categories = tuple(json.loads(authors)), tuple(json.loads(categories))
    return Paper(arxiv_id, title, authors, year, categories, *parts)


def _author_terms(names: Sequence[str]) -> list[str]:
    """The terms by which the index finds these names; initials alone are no help."""
    return [f'authors : "{name}"' for name in names if len(name) > 1] or [
        f'authors : "{name}"' for name in names
    ]


def _replace_month(
    connection: sqlite3.Connection, month: str, rows: Iterable[Mapping[str, Any]]
) -> None:
    first = _first_number(month)
    last = first + _NUMBERS_PER_MONTH - 1
    connection.execute("delete from words where rowid between ? and ?", (first, last))
    connection.execute("delete from papers where id between ? and ?", (first, last))
    for place, row in enumerate(rows):
        paper = Paper.from_row(row)
        columns = (
            paper.arxiv_id,
            paper.title,
            json.dumps(paper.authors),
            paper.year,
            json.dumps(paper.categories),
            paper.abstract,
            paper.grade,
            paper.subset,
        )
        connection.execute(
            "insert into papers values (?, ?, ?, ?, ?, ?, ?, ?, ?)", (last - place, *columns)
        )
        keys = dict.fromkeys("".join(title_words(name)) for name in _names_of(paper.title))
        connection.execute(
            "insert into words (rowid, title, authors, names) values (?, ?, ?, ?)",
            (last - place, _words(paper.title), _words(" ".join(paper.authors)), " ".join(keys)),
        )


def _words(text: str) -> str:
    return " ".join(title_words(text))


def _numbers_of_year(year: int | None) -> dict[str, int]:
    """The lowest and the highest number of a year's papers; of all papers without a year."""
    first, last = ("0000-01", "9999-12") if year is None else (f"{year}-01", f"{year}-12")
    return {"first": _first_number(first), "last": _first_number(last) + _NUMBERS_PER_MONTH - 1}


def _first_number(month: str) -> int:
    """The lowest number of a month's papers."""
    return (int(month[:4]) * 12 + int(month[5:]) - 1) * _NUMBERS_PER_MONTH
