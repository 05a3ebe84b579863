"""Titles and DOIs of papers, looked up by their keys."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import orjson

from pipeline.identity.identifiers import split_dois
from pipeline.identity.people import surname
from pipeline.identity.titles import doi_key, title_keys, title_words, window_key

VERSION = 1
"""Raised when the columns or the keys change: an index is then made again."""
COLUMNS = ["arxiv_id", "title", "authors", "doi", "published"]
"""Columns of metadata that the index is made of."""
SCHEMA = """
create table papers (
    id integer primary key, month text,
    arxiv_id text, title text, surnames text, dois text, year integer
);
create index papers_of_month on papers (month);
create table keys (key integer, paper integer, primary key (key, paper)) without rowid
"""
NEWEST = "9999-12"
_AUTHORS_CHECKED = 20
_PAPER = "arxiv_id, title, surnames, dois, year"
# `cross join` keeps the order of the tables: keys that are looked up in ascending order take 0.3 us
# each among 3.5 million, in any other order four times as long. A temporary table of them in place
# of JSON took 1 us for each.
_LOOK_UP = f"""
select keys.key, papers.id, month, {_PAPER}
from json_each(?) as lookup
cross join keys on keys.key = lookup.value
cross join papers on papers.id = keys.paper
where month <= ?
"""  # noqa: S608


class TitleCandidate(NamedTuple):
    """A paper that an item may cite; title and surnames folded, words split by blanks."""

    arxiv_id: str
    title: str
    surnames: str
    dois: str
    year: int

    @property
    def words(self) -> list[str]:
        return self.title.split()

    @property
    def index_keys(self) -> list[int]:
        """The keys by which it is found, signed as SQLite stores them."""
        dois = map(doi_key, self.dois.split())
        keys = [*title_keys(self.words), *filter(None, [window_key(self.words)]), *dois]
        return [key - (1 << 64) if key >> 63 else key for key in keys]


Recorder = Callable[[np.ndarray, Mapping[int, tuple[str, TitleCandidate]]], None]
"""Called for each look-up with the keys (int64, ascending) and the papers that have any, each with
its month, by their ids in the index.
"""


class TitleIndex:
    """Papers by the keys of their titles and DOIs.

    newest: the newest month whose papers are found. record: called for each look-up.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        newest: str = NEWEST,
        record: Recorder | None = None,
    ) -> None:
        self._connection, self._newest, self._record = connection, newest, record

    def candidates(
        self, keys: Mapping[int, Sequence[int] | np.ndarray]
    ) -> Iterator[tuple[int, list[TitleCandidate]]]:
        """(item, papers that share a key with it, by identifier) for the items that have any.

        keys: by number of the item (uint64).
        """
        keys_by_item = [np.asarray(of_item, np.uint64) for of_item in keys.values()]
        all_keys = np.concatenate([np.empty(0, np.uint64), *keys_by_item]).view(np.int64)
        items = np.repeat(np.fromiter(keys, np.int64, len(keys)), list(map(len, keys_by_item)))
        order = np.argsort(all_keys)
        all_keys, items = all_keys[order], items[order]
        papers: dict[int, tuple[str, TitleCandidate]] = {}
        papers_by_item: dict[int, set[int]] = defaultdict(set)
        distinct_keys = np.unique(all_keys)
        key_list = orjson.dumps(distinct_keys, option=orjson.OPT_SERIALIZE_NUMPY).decode()
        for key, paper, month, *columns in self._connection.execute(
            _LOOK_UP, (key_list, self._newest)
        ):
            papers[paper] = month, TitleCandidate(*columns)
            first, end = np.searchsorted(all_keys, key), np.searchsorted(all_keys, key, "right")
            for item in items[first:end].tolist():
                papers_by_item[item].add(paper)
        if self._record is not None:
            self._record(distinct_keys, papers)
        for item in sorted(papers_by_item):
            candidates = {papers[paper][1] for paper in papers_by_item[item]}
            yield item, sorted(candidates, key=lambda candidate: candidate.arxiv_id)


def replace_titles(
    connection: sqlite3.Connection, month: str, rows: Iterable[Mapping[str, Any]]
) -> tuple[list[TitleCandidate], list[TitleCandidate]]:
    """Put a month's rows of metadata (COLUMNS) in place of those that the index has of it.

    Only what differs is written. Returns the papers that left and those that came. Papers without a
    title are found by their DOI alone, those with neither are left out.
    """
    present: dict[TitleCandidate, int] = {}
    query = f"select {_PAPER}, id from papers where month = ?"  # noqa: S608
    for *columns, number in connection.execute(query, (month,)):
        present[TitleCandidate(*columns)] = number
    current = dict.fromkeys(_candidate(row, month) for row in rows)
    removed = [paper for paper in present if paper not in current]
    for paper in removed:
        pairs = [(key, present[paper]) for key in paper.index_keys]
        connection.executemany("delete from keys where key = ? and paper = ?", pairs)
        connection.execute("delete from papers where id = ?", (present[paper],))
    keys = {paper: paper.index_keys for paper in current if paper not in present}
    added = [paper for paper in keys if keys[paper]]
    (last,) = connection.execute("select coalesce(max(id), 0) from papers").fetchone()
    numbered = list(enumerate(added, start=last + 1))
    connection.executemany(
        "insert into papers values (?, ?, ?, ?, ?, ?, ?)",
        [(number, month, *paper) for number, paper in numbered],
    )
    connection.executemany(
        "insert or ignore into keys values (?, ?)",
        sorted((key, number) for number, paper in numbered for key in keys[paper]),
    )
    return removed, added


def _candidate(row: Mapping[str, Any], month: str) -> TitleCandidate:
    return TitleCandidate(
        arxiv_id=row["arxiv_id"],
        title=" ".join(title_words(row["title"] or "")),
        surnames=" ".join(filter(None, map(surname, (row["authors"] or ())[:_AUTHORS_CHECKED]))),
        dois=" ".join(split_dois(row["doi"])),
        year=int((row["published"] or month)[:4]),
    )
