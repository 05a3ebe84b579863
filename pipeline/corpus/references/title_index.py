"""Titles and DOIs of all papers up to a month, in Parquet below the data root's cache, and look-ups
in them by key.

Each month of the table `metadata` has one file, named by the digest of its rows, so that it is made
once and a changed month gets another. DuckDB joins the keys of many bibliography items with all
files at once.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline import tables
from pipeline.arxiv.dois import split_dois
from pipeline.arxiv.titles import doi_key, surname, title_keys, title_words, window_key
from pipeline.engine.stage import Workspace
from pipeline.errors import PermanentFailure
from pipeline.storage.provenance import read_provenance
from pipeline.storage.writing import write_cache_file

# Raised when the columns or the keys change: the files are then made again.
VERSION = 3
_AUTHORS_CHECKED = 20
_METADATA_COLUMNS = ["arxiv_id", "title", "authors", "doi", "published"]
_SCHEMA = pa.schema(
    [
        ("arxiv_id", pa.string()),
        ("title", pa.string()),
        ("surnames", pa.string()),
        ("dois", pa.string()),
        ("year", pa.int32()),
        ("keys", pa.list_(pa.uint64())),
    ]
)
# One look-up among the 2.7 million titles of arXiv takes a second, for 4,500 items or for 20,000.
_LOOK_UP = """
select distinct item, arxiv_id, title, surnames, dois, year
from (select unnest(keys) as key, arxiv_id, title, surnames, dois, year from titles) join items
using (key)
order by item, arxiv_id
"""
# A stage is one of several processes of its machine; more threads than two gain nothing on files
# this small.
_THREADS, _MEMORY = 2, "1GB"


@dataclass(frozen=True, slots=True)
class TitleCandidate:
    """A paper that an item may cite; title and surnames folded, words split by blanks."""

    arxiv_id: str
    title: str
    surnames: str
    dois: str
    year: int

    @property
    def words(self) -> list[str]:
        return self.title.split()


class TitleIndex:
    """Papers by the keys of their titles and DOIs, from a table in memory or from files.

    Raises PermanentFailure where a file cannot be read.
    """

    def __init__(self, titles: pa.Table | Sequence[Path]) -> None:
        import duckdb

        self._connection = duckdb.connect(config={"threads": _THREADS, "memory_limit": _MEMORY})
        if isinstance(titles, pa.Table):
            self._connection.register("titles", titles)
        else:
            with _named_errors():
                self._connection.read_parquet(list(map(str, titles))).create_view("titles")

    def candidates(
        self, keys: Mapping[int, Sequence[int] | np.ndarray]
    ) -> Iterator[tuple[int, list[TitleCandidate]]]:
        """(item, papers that share a key with it, by identifier) for the items that have any.

        keys: by number of the item (uint64).
        """
        keys_by_item = [np.asarray(of_item, np.uint64) for of_item in keys.values()]
        columns = {
            "key": np.concatenate([np.empty(0, np.uint64), *keys_by_item]),
            "item": np.repeat(np.fromiter(keys, np.int64, len(keys)), list(map(len, keys_by_item))),
        }
        self._connection.register("items", pa.table(columns))
        with _named_errors():
            rows = self._connection.execute(_LOOK_UP).fetchall()
        for item, group in groupby(rows, key=lambda row: row[0]):
            yield int(item), [TitleCandidate(*row[1:]) for row in group]


@contextlib.contextmanager
def _named_errors() -> Iterator[None]:
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        raise PermanentFailure(
            f"the titles of earlier months cannot be read ({error}): delete the folder cache/titles"
            " of the data root, and run again"
        ) from error


def title_table(rows: Iterable[Mapping[str, Any]], month: str) -> pa.Table:
    """The table of titles of a month's rows of metadata (arxiv_id, title, authors, doi, published).

    Papers without a title are in it by their DOI alone.
    """
    papers = [paper for row in rows if (paper := _title_row(row, month))["keys"]]
    return pa.Table.from_pylist(papers, schema=_SCHEMA)


def _title_row(row: Mapping[str, Any], month: str) -> dict[str, Any]:
    words, dois = title_words(row["title"] or ""), split_dois(row["doi"])
    return {
        "arxiv_id": row["arxiv_id"],
        "title": " ".join(words),
        "surnames": " ".join(filter(None, map(surname, (row["authors"] or ())[:_AUTHORS_CHECKED]))),
        "dois": " ".join(dois),
        "year": int((row["published"] or month)[:4]),
        "keys": [*title_keys(words), *filter(None, [window_key(words)]), *map(doi_key, dois)],
    }


def month_digests(workspace: Workspace, month: str) -> dict[str, str]:
    """Digests of metadata's rows, month by month up to this one, oldest first."""
    digests = {}
    for other in workspace.root.months(tables.METADATA):
        provenance = (
            read_provenance(workspace.root.file(tables.METADATA, other)) if other <= month else None
        )
        if provenance is not None:
            digests[other] = provenance.rows_sha256
    return digests


def open_title_index(workspace: Workspace, month: str) -> TitleIndex:
    """The index of this month's and all earlier metadata. Raises as `DataRoot.read` does."""
    folder = workspace.cache("titles")
    files = []
    for earlier, digest in month_digests(workspace, month).items():
        rows = partial(workspace.root.iterate, tables.METADATA, earlier, _METADATA_COLUMNS)
        files.append(title_file(folder, earlier, digest, rows))
    return TitleIndex(files or _SCHEMA.empty_table())


def title_file(
    folder: Path, month: str, digest: str, read: Callable[[], Iterable[Mapping[str, Any]]]
) -> Path:
    """The file of a month's titles, made where it is missing. Two processes may make it at once: it
    is the same.

    digest: of what `read` gives, rows of metadata (arxiv_id, title, authors, doi, published).
    """
    file = folder / f"{month}-{VERSION}-{digest[:16]}.parquet"
    if not file.exists():
        content = pa.BufferOutputStream()
        pq.write_table(title_table(read(), month), content, compression="zstd")
        write_cache_file(file, content.getvalue(), f"{month}-*.parquet")
    return file
