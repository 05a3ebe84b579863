"""The contents of a zip or of a folder of loose pages: rows of pages and strays, cached on disk.

A stray is a name that is not a readable arXiv page. A listing has a part for each month and subset.
A zip's listing is kept as one Parquet file with a row group for each part, so that the zip's
directory is read once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.corpus.dump.central_directory import Entries
from pipeline.corpus.dump.folder import FileState
from pipeline.corpus.dump.member import subset_of
from pipeline.errors import MissingInput
from pipeline.identity.identifiers import NotAPage, read_member_name
from pipeline.storage.writing import write_cache_file
from pipeline.text import text_digest

NUMBERS = {
    "offset": pa.int64(),
    "bytes": pa.int64(),
    "compressed_bytes": pa.int64(),
    "crc32": pa.uint32(),
}
# A stray has a reason and a detail for the ledger, and no identifier; a page has only the
# identifier.
ROWS = pa.schema(
    {
        "arxiv_id": pa.string(),
        "member": pa.string(),
        **NUMBERS,
        "reason": pa.string(),
        "detail": pa.string(),
    }
)
_PART = pa.schema({"month": pa.string(), "subset": pa.string(), "strays": pa.bool_()})
_CLASSIFIED_ROWS = pa.unify_schemas([_PART, ROWS])
_NAMES_PER_CHUNK = 1 << 16

# Raised when listings are made in another way; older files are then ignored.
_FORMAT = 3
_METADATA_KEY = b"citeloom_listing"
_DAMAGE = (OSError, pa.ArrowException, KeyError, TypeError, ValueError)

Fault = tuple[str, str]
"""A ledger's reason, and its detail."""
Chunk = tuple[Sequence[str], Mapping[str, Any], Mapping[int, Fault]]
"""Names; a column of the same length for each of NUMBERS; faults by place among the names."""


@dataclass(frozen=True, slots=True)
class ListingPart:
    """Some rows of a listing: the pages of one month and subset, or the strays in their folders.

    month: empty for strays whose folder names no month. sha256: over the rows, independent of the
    file they lie in.
    """

    month: str
    subset: str
    strays: bool
    rows: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Listing:
    """A listing. `parts` are sorted; `rows`, theirs in order, are in memory or in a file."""

    parts: tuple[ListingPart, ...]
    rows: pa.Table | Path

    def rows_of(self, part: ListingPart) -> pa.Table:
        """The rows of one of the parts. Raises MissingInput where the file is gone or damaged."""
        place = self.parts.index(part)
        if isinstance(self.rows, pa.Table):
            return self.rows.slice(sum(before.rows for before in self.parts[:place]), part.rows)
        try:
            with pq.ParquetFile(self.rows, page_checksum_verification=True) as file:
                return file.read_row_group(place)
        except _DAMAGE as error:
            self.rows.unlink(missing_ok=True)
            raise MissingInput(
                f"{self.rows} cannot be read ({error}): run again, which makes it anew"
            ) from error


def list_zip(entries: Entries, zip_name: str) -> Listing:
    """The listing of a zip. Entries that are folders have no row."""
    return build_listing(zip_name, _zip_chunks(entries))


def _zip_chunks(entries: Entries) -> Iterator[Chunk]:
    for first in range(0, len(entries), _NAMES_PER_CHUNK):
        last = min(first + _NAMES_PER_CHUNK, len(entries))
        numbers = {name: getattr(entries, name)[first:last] for name in NUMBERS}
        faults = {
            place - first: ("corrupt_member", fault)
            for place, fault in entries.faults.items()
            if first <= place < last
        }
        yield entries.names(first, last), numbers, faults


def build_listing(zip_name: str, chunks: Iterable[Chunk]) -> Listing:
    """The listing of names, in their order within a part. zip_name: empty for loose pages."""
    batches = [_CLASSIFIED_ROWS.empty_table()]
    for names, numbers, faults in chunks:
        files = [place for place, name in enumerate(names) if not name.endswith("/")]
        classified = [_classify(names[place], faults.get(place), zip_name) for place in files]
        months, subsets, strays, ids, reasons, details = (
            zip(*classified, strict=True) if classified else ((),) * 6
        )
        columns = {
            "month": months,
            "subset": subsets,
            "strays": strays,
            "arxiv_id": ids,
            "member": [names[place] for place in files],
            "reason": reasons,
            "detail": details,
            **{name: np.asarray(numbers[name])[files] for name in NUMBERS},
        }
        batches.append(pa.table(columns, schema=_CLASSIFIED_ROWS))
    rows = pa.concat_tables(batches).sort_by([(name, "ascending") for name in _PART.names])
    counts = rows.group_by(_PART.names, use_threads=False).aggregate([([], "count_all")])
    rows, parts, start = rows.select(ROWS.names), [], 0
    for part in counts.to_pylist():
        count = part.pop("count_all")
        parts.append(ListingPart(**part, rows=count, sha256=_digest(rows.slice(start, count))))
        start += count
    return Listing(tuple(parts), rows)


def _classify(
    name: str, fault: Fault | None, zip_name: str
) -> tuple[str, str, bool, str | None, str | None, str | None]:
    """(month, subset, is stray, identifier, reason, detail) of a name."""
    parsed = read_member_name(name)
    # An absolute name, or one that goes up. Nothing is ever unpacked, but no page has such a name.
    if name.startswith("/") or (".." in name and ".." in name.split("/")):
        parsed = NotAPage("its name leads out of its folder", None)
    if isinstance(parsed, NotAPage):
        subset = subset_of(name.rpartition("/")[0], zip_name)
        return parsed.month or "", subset, True, None, "not_an_arxiv_page", parsed.reason
    subset = subset_of(parsed.folder, zip_name)
    if fault is not None:
        return parsed.month, subset, True, None, *fault
    return parsed.month, subset, False, parsed.arxiv_id, None, None


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


def cached_listing(
    folder: Path, address: str, state: FileState, make: Callable[[], Listing]
) -> Listing:
    """The listing of the zip at an address in this state, from its file or by `make`.

    Its rows stay in memory where the file cannot be written, as below a read-only data root.
    """
    zip_digest = text_digest(address)[:32]
    state_digest = text_digest(repr((_FORMAT, state)))[:32]
    file = folder / f"{zip_digest}-{state_digest}.parquet"
    try:
        metadata = pq.read_metadata(file)
        parts = tuple(ListingPart(**part) for part in json.loads(metadata.metadata[_METADATA_KEY]))
        if metadata.num_rows == sum(part.rows for part in parts):
            return Listing(parts, file)
    except _DAMAGE:
        pass
    listing = make()
    try:
        write_cache_file(file, _as_parquet(listing), f"{zip_digest}*")
    except OSError:
        return listing
    return Listing(listing.parts, file)


def _as_parquet(listing: Listing) -> pa.Buffer:
    """The content of a listing's file: a row group for each part."""
    parts = json.dumps([asdict(part) for part in listing.parts])
    schema = ROWS.with_metadata({_METADATA_KEY: parts})
    content = pa.BufferOutputStream()
    with pq.ParquetWriter(content, schema, compression="zstd", write_page_checksum=True) as writer:
        for part in listing.parts:
            writer.write_table(listing.rows_of(part), row_group_size=max(1, part.rows))
    return content.getvalue()
