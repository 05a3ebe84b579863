"""Titles that each month's references looked up, and whether they are unchanged.

The items of a month are looked up among the metadata of all months before it. The month's file
records two digests:

    EARLIER   of all earlier metadata: while it is the same, nothing else is compared;
    FOUND     of the papers that share a key with any of its items: the sum of a hash of each.

Where earlier metadata has changed, FOUND is compared. Its present value is stored in the index of
titles, and adjusted when a month of metadata changes: the titles that came and went are looked up
among the keys of every later month's items, which are kept in a file for each month.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from pipeline import tables
from pipeline.corpus.references.resolution import keys_of_items
from pipeline.corpus.references.title_index import (
    COLUMNS,
    SCHEMA,
    VERSION,
    TitleCandidate,
    TitleIndex,
    replace_titles,
)
from pipeline.engine.digests import digest_before
from pipeline.engine.month_index import MonthIndex, TableSource
from pipeline.engine.stage import Job, Workspace
from pipeline.storage.provenance import Provenance
from pipeline.storage.sqlite import transaction
from pipeline.storage.writing import write_cache_file

EARLIER, FOUND = "metadata of earlier months", "titles looked up in them"
_LOOKUPS = "create table lookups (month text primary key, papers text, found text) without rowid"
_MODULUS = 1 << 128


def metadata_titles(workspace: Workspace) -> MonthIndex:
    """The index of the titles of all metadata."""
    return MonthIndex(
        workspace=workspace,
        name="titles",
        version=VERSION,
        schema=f"{SCHEMA}; {_LOOKUPS}",
        replace_month=partial(_replace_month, workspace),
        source=TableSource(workspace, tables.METADATA, COLUMNS),
    )


@dataclass
class LookupRecord:
    """What the items of a month looked up, and which papers of earlier months were found."""

    month: str
    _keys: list[np.ndarray] = field(default_factory=list)
    _papers: set[int] = field(default_factory=set)
    _sum: int = 0

    def add(self, keys: np.ndarray, papers: Mapping[int, tuple[str, TitleCandidate]]) -> None:
        """Add one look-up, as `title_index.Recorder` is called."""
        self._keys.append(keys)
        for number, (month, paper) in papers.items():
            if month < self.month and number not in self._papers:
                self._papers.add(number)
                self._sum += _hash(paper)

    @property
    def keys(self) -> np.ndarray:
        """All keys, ascending (int64)."""
        return np.unique(np.concatenate([np.empty(0, np.int64), *self._keys]))

    @property
    def digest(self) -> str:
        """The digest of the papers that were found."""
        return _to_hex(self._sum)


@contextlib.contextmanager
def recorded_titles(job: Job) -> Iterator[TitleIndex]:
    """The titles up to the job's month. At the end of the block, what was looked up is recorded."""
    record = LookupRecord(job.month)
    earlier = digest_before(job.workspace, tables.METADATA, job.month)
    with metadata_titles(job.workspace).open() as connection:
        months = _earlier_months(connection, job.month)
        yield TitleIndex(connection, job.month, record.add)
        job.looked_up = {EARLIER: earlier, FOUND: record.digest}
        with transaction(connection):
            # Otherwise the digest is of titles that another process has replaced meanwhile.
            if months == _earlier_months(connection, job.month):
                _store(job.workspace, connection, record)


def lookups_hold(workspace: Workspace, month: str, written: Provenance) -> bool:
    """Whether the items of a month would find the same titles as when its references were
    written.
    """
    if written.inputs.get(EARLIER) == digest_before(workspace, tables.METADATA, month):
        return True
    return written.inputs.get(FOUND) == _current_digest(workspace, month)


def _current_digest(workspace: Workspace, month: str) -> str:
    """The present digest of the papers that a month's items find."""
    papers = _papers_digest(workspace, month)
    with metadata_titles(workspace).open() as connection, transaction(connection):
        query = "select found from lookups where month = ? and papers = ?"
        stored = connection.execute(query, (month, papers)).fetchone()
        if stored:
            return str(stored[0])
        keys = _read_keys(workspace, month, papers)
        if keys is None:
            keys = _keys_of_month(workspace, month)
        record = LookupRecord(month)
        titles = TitleIndex(connection, month, record.add)
        for _ in titles.candidates({0: keys.view(np.uint64)}):
            pass  # the look-up itself calls `record.add`
        _store(workspace, connection, record)
        return record.digest


def _replace_month(
    workspace: Workspace,
    connection: sqlite3.Connection,
    month: str,
    rows: Iterable[Mapping[str, Any]],
) -> None:
    """Replace a month's titles, and adjust the digests of the later months that find them."""
    removed, added = replace_titles(connection, month, rows)
    query = "select month, papers, found from lookups where month > ?"
    later = connection.execute(query, (month,)).fetchall()
    if not later or not (removed or added):
        return
    changes = _Changes(removed, added)
    for other, papers, found in later:
        keys = _read_keys(workspace, other, papers)
        if keys is None:
            connection.execute("delete from lookups where month = ?", (other,))
        else:
            digest = _to_hex(int(found, 16) + changes.difference(keys))
            if digest != found:
                update = "update lookups set found = ? where month = ?"
                connection.execute(update, (digest, other))


class _Changes:
    """Papers that came to the index and left it."""

    def __init__(self, removed: Sequence[TitleCandidate], added: Sequence[TitleCandidate]) -> None:
        keys_by_paper = [paper.index_keys for paper in (*removed, *added)]
        self._keys = np.array(list(chain.from_iterable(keys_by_paper)), np.int64)
        counts = [len(keys) for keys in keys_by_paper]
        self._papers = np.repeat(np.arange(len(counts)), counts)
        self._hashes = [-_hash(paper) for paper in removed] + [_hash(paper) for paper in added]

    def difference(self, keys: np.ndarray) -> int:
        """By how much they change the sum of what is found by some keys (int64, ascending)."""
        if not len(keys):
            return 0
        places = np.minimum(np.searchsorted(keys, self._keys), len(keys) - 1)
        papers = np.unique(self._papers[keys[places] == self._keys])
        return sum(self._hashes[paper] for paper in papers)


def _store(workspace: Workspace, connection: sqlite3.Connection, record: LookupRecord) -> None:
    """Keep what a month looked up: its keys in a file, its digest in the index."""
    papers = _papers_digest(workspace, record.month)
    content = io.BytesIO()
    np.save(content, record.keys)
    file = _keys_file(workspace, record.month, papers)
    write_cache_file(file, content.getvalue(), f"{record.month}-*.npy")
    connection.execute(
        "insert or replace into lookups values (?, ?, ?)", (record.month, papers, record.digest)
    )


def _read_keys(workspace: Workspace, month: str, papers: str) -> np.ndarray | None:
    """The keys of a month's items (int64, ascending); None where this machine has none."""
    try:
        keys: np.ndarray = np.load(_keys_file(workspace, month, papers), mmap_mode="r")
    except (OSError, ValueError):  # absent or damaged
        return None
    return keys


def _keys_of_month(workspace: Workspace, month: str) -> np.ndarray:
    """The keys of a month's items, from its papers (uint64)."""
    papers = workspace.root.iterate(tables.PAPERS, month, ["bibliography"])
    return keys_of_items(item for paper in papers for item in paper["bibliography"] or ())


def _keys_file(workspace: Workspace, month: str, papers: str) -> Path:
    return workspace.cache("lookups") / f"{month}-{papers[:16]}.npy"


def _papers_digest(workspace: Workspace, month: str) -> str:
    provenance = workspace.root.provenance(tables.PAPERS, month)
    return provenance.rows_sha256 if provenance else ""


def _earlier_months(connection: sqlite3.Connection, month: str) -> list[tuple[str, str]]:
    """The months before this one that the index holds, each with its digest."""
    query = "select month, digest from months where month < ? order by month"
    return connection.execute(query, (month,)).fetchall()


def _hash(paper: TitleCandidate) -> int:
    """128 bits of what is compared of a paper."""
    text = "\0".join(map(str, paper))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=16).digest(), "little")


def _to_hex(total: int) -> str:
    return f"{total % _MODULUS:032x}"
