"""The contents of a zip or of a folder of loose pages: rows of pages and strays, cached on disk.

A stray is a name that is not a readable arXiv page. A listing has a part for each month and subset. A zip's listing
is kept as one Parquet file with a row group for each part, so that the zip's directory is read once.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.arxiv.identifiers import NotAPage, read_member_name
from pipeline.corpus.dump.central_directory import Entries
from pipeline.corpus.dump.folder import FileState
from pipeline.corpus.dump.member import subset_of
from pipeline.errors import MissingInput
from pipeline.storage.writing import move_into_place

NUMBERS = {"offset": pa.int64(), "bytes": pa.int64(), "compressed_bytes": pa.int64(), "crc32": pa.uint32()}
# A stray has a reason and a detail for the ledger, and no identifier; a page has only the identifier.
ROWS = pa.schema(
    {"arxiv_id": pa.string(), "member": pa.string(), **NUMBERS, "reason": pa.string(), "detail": pa.string()}
)
_NAMES_PER_CHUNK = 1 << 16

# Raised when listings are made in another way; older files are then ignored.
_FORMAT = 2
_METADATA_KEY = b"citeloom_listing"
_DAMAGE = (OSError, pa.ArrowException, KeyError, TypeError, ValueError)

Fault = tuple[str, str]
"""A ledger's reason, and its detail."""
Chunk = tuple[Sequence[str], Mapping[str, Any], Mapping[int, Fault]]
"""Names; for each of NUMBERS a column of the same length; faults of pages by their place among the names."""


@dataclass(frozen=True, slots=True)
class Part:
    """Some rows of a listing: the pages of one month and subset, or the strays in their folders.

    month: empty for strays whose folder names no month. sha256: over the rows, independent of the file they lie in.
    """

    month: str
    subset: str
    strays: bool
    rows: int
    sha256: str


@dataclass(frozen=True, slots=True)
class MemoryListing:
    """A listing in memory. `parts` are sorted; `rows` are those of the parts one after another."""

    parts: tuple[Part, ...]
    rows: pa.Table

    def rows_of(self, part: Part) -> pa.Table:
        """The rows of one of the parts."""
        place = self.parts.index(part)
        return self.rows.slice(sum(before.rows for before in self.parts[:place]), part.rows)


def list_zip(entries: Entries, zip_name: str) -> MemoryListing:
    """The listing of a zip. Entries that are folders have no row."""
    return build_listing(zip_name, _zip_chunks(entries))


def _zip_chunks(entries: Entries) -> Iterator[Chunk]:
    for first in range(0, len(entries), _NAMES_PER_CHUNK):
        last = min(first + _NAMES_PER_CHUNK, len(entries))
        numbers = {name: getattr(entries, name)[first:last] for name in NUMBERS}
        faults = {
            place - first: ("corrupt_member", fault) for place, fault in entries.faults.items() if first <= place < last
        }
        yield entries.names(first, last), numbers, faults


def build_listing(zip_name: str, chunks: Iterable[Chunk]) -> MemoryListing:
    """The listing of names with their numbers; within a part, in their order. `zip_name` is empty for loose pages."""
    batches = [ROWS.empty_table()]
    part_numbers: dict[tuple[str, str, bool], int] = {}
    numbers_of_rows = [np.empty(0, np.int64)]
    for names, numbers, faults in chunks:
        files = [place for place, name in enumerate(names) if not name.endswith("/")]
        classified = [_classify(names[place], faults.get(place), zip_name) for place in files]
        keys, ids, reasons, details = zip(*classified, strict=True) if classified else ((), (), (), ())
        columns = [
            pa.array(ids, pa.string()),
            pa.array([names[place] for place in files], pa.string()),
            *(pa.array(np.asarray(numbers[name])[files], kind) for name, kind in NUMBERS.items()),
            pa.array(reasons, pa.string()),
            pa.array(details, pa.string()),
        ]
        batches.append(pa.table(columns, schema=ROWS))
        numbers_of_rows.append(np.array([part_numbers.setdefault(key, len(part_numbers)) for key in keys], np.int64))
    return _sorted_into_parts(pa.concat_tables(batches), np.concatenate(numbers_of_rows), list(part_numbers))


def _sorted_into_parts(
    rows: pa.Table, part_numbers: np.ndarray[Any, Any], keys: Sequence[tuple[str, str, bool]]
) -> MemoryListing:
    """Rows whose part is known by its number, the place of its key among `keys`, sorted by those keys."""
    order = sorted(range(len(keys)), key=keys.__getitem__)
    ranks = np.argsort(np.array(order, np.int64))[part_numbers]
    rows = rows.take(np.argsort(ranks, kind="stable"))
    parts, start = [], 0
    for key, count in zip(sorted(keys), np.bincount(ranks, minlength=len(keys)).tolist(), strict=True):
        parts.append(Part(*key, rows=count, sha256=_digest(rows.slice(start, count))))
        start += count
    return MemoryListing(tuple(parts), rows)


def _classify(
    name: str, fault: Fault | None, zip_name: str
) -> tuple[tuple[str, str, bool], str | None, str | None, str | None]:
    """((month, subset, is stray) of a name's part, identifier, reason, detail)."""
    # An absolute name, or one that goes up. Nothing is ever unpacked, but no page has such a name.
    leads_out = name.startswith("/") or (".." in name and ".." in name.split("/"))
    parsed = NotAPage("its name leads out of its folder", None) if leads_out else read_member_name(name)
    if isinstance(parsed, NotAPage):
        subset = subset_of(name.rpartition("/")[0], zip_name)
        return (parsed.month or "", subset, True), None, "not_an_arxiv_page", parsed.reason
    subset = subset_of(parsed.folder, zip_name)
    if fault is not None:
        return (parsed.month, subset, True), None, *fault
    return (parsed.month, subset, False), parsed.arxiv_id, None, None


def _digest(rows: pa.Table) -> str:
    """SHA-256 of the rows' values alone: Arrow's own bytes may change with its version."""
    digest = hashlib.sha256()
    for name in ROWS.names:
        column = rows.column(name)
        if name in NUMBERS:
            digest.update(column.to_numpy().astype("<i8").tobytes())
        else:
            digest.update("\0".join(value or "" for value in column.to_pylist()).encode())
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class CachedListing:
    """A listing whose rows are on disk; made again if its file has been damaged or replaced."""

    address: str
    parts: tuple[Part, ...]
    _file: Path
    _make_again: Callable[[], MemoryListing | CachedListing]

    def rows_of(self, part: Part) -> pa.Table:
        """The rows of one of the parts. Raises MissingInput where the zip has changed since it was listed."""
        try:
            with pq.ParquetFile(self._file, page_checksum_verification=True) as file:
                # Another process that saw the zip in another state may have written its own listing.
                if _read_metadata(file.metadata)[1] == self.parts:
                    return file.read_row_group(self.parts.index(part))
        except _DAMAGE:
            pass
        try:
            listing = self._make_again()
        except OSError as error:
            raise MissingInput(f"{self.address} cannot be read ({error.strerror or error}): run again") from error
        if part not in listing.parts:
            raise MissingInput(f"{self.address} has changed while it was read: run again")
        return listing.rows_of(part)


Listing = MemoryListing | CachedListing


class ListingCache:
    """A folder of listings: one file for each zip, by its address; its metadata hold the zip's size and mark."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def file(self, address: str, suffix: str = ".parquet") -> Path:
        """The file that caches what is at an address."""
        return self._folder / (hashlib.sha256(address.encode()).hexdigest()[:32] + suffix)

    def listing(self, address: str, state: FileState, make: Callable[[], MemoryListing]) -> Listing:
        """The listing of the zip at an address in this state; made by `make` if it is not in the cache."""
        label = {"format": _FORMAT, "address": address, **asdict(state)}
        file = self.file(address)

        def make_and_store() -> Listing:
            listing = make()
            stored = _store(file, label, listing)
            return CachedListing(address, listing.parts, file, make_and_store) if stored else listing

        try:
            metadata = pq.read_metadata(file)
            cached_label, parts = _read_metadata(metadata)
        except _DAMAGE:
            return make_and_store()
        is_whole = metadata.num_row_groups == len(parts) and metadata.num_rows == sum(part.rows for part in parts)
        if cached_label != label or not is_whole:
            return make_and_store()
        return CachedListing(address, parts, file, make_and_store)


def _read_metadata(metadata: pq.FileMetaData) -> tuple[dict[str, object], tuple[Part, ...]]:
    """(label, parts) of a cached listing. Raises one of _DAMAGE for a file that is not a listing."""
    label = json.loads((metadata.metadata or {})[_METADATA_KEY])
    parts = tuple(Part(**part) for part in label.pop("parts"))
    return label, parts


def _store(file: Path, label: Mapping[str, object], listing: MemoryListing) -> bool:
    """Write a listing; False where that is not possible, as below a data root that is read-only."""
    staged = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    metadata = {_METADATA_KEY: json.dumps({**label, "parts": [asdict(part) for part in listing.parts]})}
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        for orphan in file.parent.glob(f".{file.name}.*.tmp"):
            orphan.unlink(missing_ok=True)  # of a run that was killed; a live one then keeps its rows in memory
        with pq.ParquetWriter(
            staged, ROWS.with_metadata(metadata), compression="zstd", write_page_checksum=True
        ) as writer:
            for part in listing.parts:
                writer.write_table(listing.rows_of(part), row_group_size=max(1, part.rows))
        move_into_place(staged, file)
    except OSError:
        with contextlib.suppress(OSError):
            staged.unlink(missing_ok=True)
        return False
    return True
