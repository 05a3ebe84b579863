"""The words of the corpus, by which misspelt words of queries are corrected."""

from __future__ import annotations

import json
import re
import sqlite3
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from string import ascii_lowercase
from typing import Any

from rapidfuzz.distance import OSA

from pipeline import tables
from pipeline.embedding.lexical import term_id, words_of
from pipeline.engine.digests import month_digests
from pipeline.engine.month_index import MonthIndex
from pipeline.engine.stage import Workspace

_VERSION = 1
# `texts`: in how many texts a word stands. `counts`: the same of each month, as zipped JSON, to be
# subtracted when the month changes; as rows they would take four times as much.
_SCHEMA = """
create table words (word text primary key, texts integer) without rowid;
create table counts (month text primary key, texts blob)
"""
# Names stand in titles and abstracts, of which all are read: 0.4 s for 5,000. Passages matter in
# small corpora.
_PASSAGES_READ = 2_000
# Words of fewer letters have too many neighbours.
_SHORTEST, _LONGEST = 5, 40
# From this length on, two slips may be corrected, behind these first letters.
_LONG, _FIRST_LETTERS = 9, 4
# A typed word that the corpus has is kept, unless a near one stands in so many times more texts.
_FAR_RARER = 500
# A pasted paragraph has enough words that are right.
_MOST_WORDS = 50
_WORD = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True, slots=True)
class _TextSource:
    """Titles and abstracts of every month, and a part of its passages."""

    workspace: Workspace

    def digests(self) -> Mapping[str, str]:
        return month_digests(self.workspace, tables.PASSAGES)

    def rows(self, month: str) -> Iterator[Mapping[str, Any]]:
        root = self.workspace.root
        if root.exists(tables.PAPERS, month):
            for row in root.iterate(tables.PAPERS, month, ["title", "abstract"]):
                yield {"text": f"{row['title'] or ''}\n{row['abstract'] or ''}"}
        yield from islice(root.iterate(tables.PASSAGES, month, ["text"]), _PASSAGES_READ)

    def is_gone(self, month: str) -> bool:
        return not self.workspace.root.exists(tables.PASSAGES, month)


def vocabulary(workspace: Workspace) -> MonthIndex:
    """The index of the corpus's words, with the number of texts that have each."""
    return MonthIndex(
        workspace=workspace,
        name="vocabulary",
        version=_VERSION,
        schema=_SCHEMA,
        replace_month=_replace_month,
        source=_TextSource(workspace),
    )


def corrected(workspace: Workspace, query: str) -> str | None:
    """The query with its misspelt words corrected; None if there is none.

    A word is corrected that the corpus lacks, or has far more rarely than a near one. Kept are
    short words, words with digits or with capitals inside, and inflections of words of the corpus.
    Raises as `MonthIndex.open` does.
    """
    typed = [match for match in _WORD.finditer(query) if _may_be_misspelt(match, query)]
    if not typed or len(query.split()) > _MOST_WORDS:
        return None
    parts, end = [], 0
    with vocabulary(workspace).open() as connection:
        for match in typed:
            better = _better_spelling(connection, match[0].lower())
            if better is not None:
                parts += [query[end : match.start()], better]
                end = match.end()
    return "".join([*parts, query[end:]]) if parts else None


def _may_be_misspelt(match: re.Match[str], query: str) -> bool:
    word = match[0]
    around = query[match.start() - 1 : match.start()] + query[match.end() : match.end() + 1]
    part_of_name = any(sign.isdigit() or sign == "_" for sign in around)
    return (
        _SHORTEST <= len(word) <= _LONGEST
        and word.isascii()
        and word[1:].islower()
        and not part_of_name
        and bool(words_of(word))
    )


def _better_spelling(connection: sqlite3.Connection, word: str) -> str | None:
    """The most frequent word of the corpus that is one slip from this one, or two in a long word;
    None if the typed word is right.
    """
    query = "select word, texts from words where word in (select value from json_each(?))"
    near = dict(connection.execute(query, (json.dumps([word, *_one_slip(word)]),)))
    typed = near.pop(word, 0)
    if not near and not typed and len(word) >= _LONG:
        near = _two_slips(connection, word)
    if any(term_id(other) == term_id(word) for other in near):
        return None
    best = max(near, key=lambda other: (near[other], other), default=None)
    return best if best is not None and near[best] > typed * _FAR_RARER else None


def _one_slip(word: str) -> set[str]:
    """The words that one missing, additional or other letter makes of a word, or two letters in
    each other's place. The first letter is right, or in the second place.
    """
    spellings = {word[1] + word[0] + word[2:]}
    for place in range(1, len(word) + 1):
        before, after = word[:place], word[place:]
        spellings |= {before + letter + after for letter in ascii_lowercase}
        if after:
            spellings |= {before + letter + after[1:] for letter in ascii_lowercase}
            spellings |= {before + after[1:], before + after[1:2] + after[0] + after[2:]}
    return spellings - {word}


def _two_slips(connection: sqlite3.Connection, word: str) -> dict[str, int]:
    """The words of the same first letters that two slips make of a word, with their texts."""
    first = word[:_FIRST_LETTERS]
    query = "select word, texts from words where word >= ? and word < ?"
    return {
        other: texts
        for other, texts in connection.execute(query, (first, first + "\U0010ffff"))
        if OSA.distance(word, other, score_cutoff=2) <= 2
    }


def _replace_month(
    connection: sqlite3.Connection, month: str, rows: Iterable[Mapping[str, Any]]
) -> None:
    counts = Counter[str]()
    for row in rows:
        words = set(words_of(row["text"]))
        counts.update(word for word in words if len(word) <= _LONGEST and word.isalpha())
    stored = connection.execute("select texts from counts where month = ?", (month,)).fetchone()
    changes = Counter(counts)
    changes.subtract(json.loads(zlib.decompress(stored[0])) if stored else {})
    connection.executemany(
        "insert into words values (?, ?) on conflict do update set texts = texts + excluded.texts",
        sorted(pair for pair in changes.items() if pair[1]),
    )
    gone = [(word,) for word, change in changes.items() if change < 0]
    connection.executemany("delete from words where word = ? and texts = 0", gone)
    connection.execute("delete from counts where month = ?", (month,))
    if counts:
        blob = zlib.compress(json.dumps(counts).encode())
        connection.execute("insert into counts values (?, ?)", (month, blob))
