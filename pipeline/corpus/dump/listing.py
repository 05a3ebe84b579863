"""What one zip, or one folder of loose pages, holds: a table of pages and strays, in parts by month and subset."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline.arxiv.identifiers import NotAPage, read_member_name
from pipeline.corpus.dump.central_directory import Entries
from pipeline.corpus.dump.subsets import subset_of

NUMBERS = {"offset": pa.int64(), "bytes": pa.int64(), "compressed_bytes": pa.int64(), "crc32": pa.uint32()}
# What the rows are. A stray has a reason and a detail for the ledger, and no identifier; a page the other way round.
ROWS = pa.schema(
    {"arxiv_id": pa.string(), "member": pa.string(), **NUMBERS, "reason": pa.string(), "detail": pa.string()}
)
_CHUNK = 1 << 16

Fault = tuple[str, str]
"""A ledger's reason, and its detail."""


@dataclass(frozen=True, slots=True)
class Part:
    """Some rows of a listing: the pages of one month and subset, or the strays that claim them.

    The month of strays whose folder claims none is empty.
    """

    month: str
    subset: str
    strays: bool
    rows: int
    sha256: str
    """Over the rows: the same however often a zip is copied, another where an entry has changed."""


@dataclass(frozen=True, slots=True)
class Listing:
    """Parts, sorted, and the rows of one after those of another."""

    parts: tuple[Part, ...]
    rows: pa.Table

    def of_part(self, part: Part) -> pa.Table:
        """The rows of one of the parts."""
        place = self.parts.index(part)
        return self.rows.slice(sum(before.rows for before in self.parts[:place]), part.rows)


def list_zip(entries: Entries, zip_name: str) -> Listing:
    """The listing of a zip. Entries that are folders are none of its rows."""
    builder = ListingBuilder(zip_name)
    for first in range(0, len(entries), _CHUNK):
        last = min(first + _CHUNK, len(entries))
        faults = {place - first: fault for place, fault in entries.faults.items() if first <= place < last}
        numbers = {name: getattr(entries, name)[first:last] for name in NUMBERS}
        builder.add(entries.names(first, last), numbers, {at: ("corrupt_member", why) for at, why in faults.items()})
    return builder.build()


@dataclass(frozen=True, slots=True)
class _Alike:
    """What a page of a folder tells of the others: one that begins alike and has as many digits is a page too.

    It takes a fifth of the time of `read_member_name`, and nearly all names of the dump are so.
    """

    code: int
    beginning: str
    length: int

    def identifier(self, name: str) -> str | None:
        """The identifier in a name without its folder; None where the name is another kind of one."""
        if len(name) != self.length or not name.startswith(self.beginning) or not name.endswith(".html"):
            return None
        number = name[len(self.beginning) : -5]
        return name[:-5] if number.isdecimal() and number.isascii() else None


class ListingBuilder:
    """Takes names with their numbers, a chunk at a time, and sorts them into parts.

    `zip_name` is empty for loose pages.
    """

    def __init__(self, zip_name: str) -> None:
        self._zip_name = zip_name
        self._batches: list[pa.RecordBatch] = []
        self._codes: list[np.ndarray[Any, Any]] = []
        self._code_of: dict[tuple[str, str, bool], int] = {}
        self._alike: dict[str, _Alike] = {}
        """Of each folder, what its pages are like."""

    def add(self, names: Sequence[str], numbers: Mapping[str, Any], faults: Mapping[int, Fault]) -> None:
        """Take names, their columns of NUMBERS, and why some pages cannot be used, by their place among the names."""
        places = [place for place, name in enumerate(names) if not name.endswith("/")]
        judged = [self._judge(names[place], faults.get(place)) for place in places]
        codes, ids, reasons, details = zip(*judged, strict=True) if judged else ((), (), (), ())
        columns = {
            "arxiv_id": pa.array(ids, pa.string()),
            "member": pa.array([names[place] for place in places], pa.string()),
            **{name: pa.array(np.asarray(numbers[name])[places], kind) for name, kind in NUMBERS.items()},
            "reason": pa.array(reasons, pa.string()),
            "detail": pa.array(details, pa.string()),
        }
        self._batches.append(pa.RecordBatch.from_pydict(columns, schema=ROWS))
        self._codes.append(np.array(codes, np.int32))

    def _judge(self, name: str, fault: Fault | None) -> tuple[int, str | None, str | None, str | None]:
        """(code of its part, identifier, reason, detail) of one name."""
        folder, _, last = name.rpartition("/")
        if fault is None and (alike := self._alike.get(folder)) and (arxiv_id := alike.identifier(last)):
            return alike.code, arxiv_id, None, None
        said = NotAPage("its name leads out of its folder", None) if _leads_out(name) else read_member_name(name)
        if isinstance(said, NotAPage):
            subset = subset_of(folder, self._zip_name)
            return self._code(said.month or "", subset, True), None, "not_an_arxiv_page", said.reason
        subset = subset_of(said.folder, self._zip_name)
        if fault is not None:
            return self._code(said.month, subset, True), None, *fault
        code = self._code(said.month, subset, False)
        if last == f"{said.arxiv_id}.html":
            self._alike[folder] = _Alike(code, f"{said.arxiv_id.partition('.')[0]}.", len(last))
        return code, said.arxiv_id, None, None

    def _code(self, *part: Any) -> int:
        return self._code_of.setdefault(part, len(self._code_of))

    def build(self) -> Listing:
        """The listing of all that was taken; within a part, in the order in which it came."""
        if not self._batches:
            return Listing((), ROWS.empty_table())
        names = sorted(self._code_of)
        rank = np.empty(len(names), np.int32)
        rank[[self._code_of[name] for name in names]] = np.arange(len(names))
        ranks = rank[np.concatenate(self._codes)]
        rows = pa.Table.from_batches(self._batches).take(np.argsort(ranks, kind="stable"))
        self._batches.clear()
        counts = np.bincount(ranks, minlength=len(names)).tolist()
        starts = np.cumsum([0, *counts])[:-1].tolist()
        parts = [
            Part(*name, rows=count, sha256=_digest(rows.slice(start, count)))
            for name, start, count in zip(names, starts, counts, strict=True)
        ]
        return Listing(tuple(parts), rows)


def _leads_out(name: str) -> bool:
    """Whether a name, taken for a path, is absolute or goes up. Nothing is ever unpacked, but no page is named so."""
    return name.startswith("/") or (".." in name and ".." in name.split("/"))


def _digest(rows: pa.Table) -> str:
    """SHA-256 of rows, of their values alone: Arrow's own bytes may change with its version."""
    digest = hashlib.sha256()
    for name in ROWS.names:
        column = rows.column(name)
        if name in NUMBERS:
            digest.update(column.to_numpy().astype("<i8").tobytes())
        else:
            digest.update("\0".join(value or "" for value in column.to_pylist()).encode())
    return digest.hexdigest()
