"""Listings kept on disk, so that a zip's directory is read once: one Parquet file a zip, one row group a part.

Kept below the data root, by the zip's address, size and time; what is damaged or of another state is made anew. Not
here: how a listing is made.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.corpus.dump.folder import FileState
from pipeline.corpus.dump.listing import ROWS, Listing, Part
from pipeline.errors import MissingInput
from pipeline.storage.writing import move_into_place

# Raised when a directory is read in another way, or names mean something else: older files are then made anew.
_FORM = 1
_KEY = b"citeloom_listing"
_DAMAGE = (OSError, pa.ArrowException, KeyError, TypeError, ValueError)


@dataclass(frozen=True, slots=True)
class KeptListing:
    """A listing whose rows lie on disk, to be read by part; or in memory, where they could not be written."""

    address: str
    parts: tuple[Part, ...]
    _make: Callable[[], KeptListing]
    _file: Path | None = None
    _rows: Listing | None = None

    def of_part(self, part: Part) -> pa.Table:
        """The rows of one of the parts. Raises MissingInput where the zip is another one by now."""
        if self._rows is not None:
            return self._rows.of_part(part)
        try:
            with pq.ParquetFile(self._file, page_checksum_verification=True) as file:
                # Another process that saw the zip in another state has put its own listing there.
                if _parts_of(file.metadata)[1] == self.parts:
                    return file.read_row_group(self.parts.index(part))
        except _DAMAGE:
            pass
        return self._made_again(part)

    def _made_again(self, part: Part) -> pa.Table:
        try:
            again = self._make()
        except OSError as error:
            raise MissingInput(f"{self.address} cannot be read ({error.strerror or error}): run again") from error
        if part not in again.parts:
            raise MissingInput(f"{self.address} has changed while it was read: run again")
        return again.of_part(part)


class ListingCache:
    """The folder of kept listings."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def file(self, address: str, ending: str = ".parquet") -> Path:
        """Where what is kept of an address lies."""
        return self._folder / (hashlib.sha256(address.encode()).hexdigest()[:32] + ending)

    def listing(self, address: str, state: FileState, make: Callable[[], Listing]) -> KeptListing:
        """The listing of what lies at an address in this state; made and kept where it is not there."""
        label = {"form": _FORM, "address": address, **asdict(state)}
        file = self.file(address)

        def remake() -> KeptListing:
            made = make()
            return KeptListing(address, made.parts, remake, *_keep(file, label, made))

        parts = _read_parts(file, label)
        return KeptListing(address, parts, remake, file) if parts is not None else remake()


def _read_parts(file: Path, label: dict[str, object]) -> tuple[Part, ...] | None:
    """The parts of a kept listing; None where it is absent, damaged, or not of what the label says."""
    try:
        metadata = pq.read_metadata(file)
        kept, parts = _parts_of(metadata)
    except _DAMAGE:
        return None
    whole = metadata.num_row_groups == len(parts) and metadata.num_rows == sum(part.rows for part in parts)
    return parts if kept == label and whole else None


def _parts_of(metadata: pq.FileMetaData) -> tuple[dict[str, object], tuple[Part, ...]]:
    """(label, parts) of a kept file. Raises some of _DAMAGE where it is not one."""
    kept = json.loads((metadata.metadata or {})[_KEY])
    parts = tuple(Part(**part) for part in kept.pop("parts"))
    return kept, parts


def _keep(file: Path, label: dict[str, object], listing: Listing) -> tuple[Path | None, Listing | None]:
    """Write a listing: (its file, None), or (None, itself) where that cannot be done, as below a data root not ours."""
    staged = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    about = {**label, "parts": [asdict(part) for part in listing.parts]}
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        for orphan in file.parent.glob(f".{file.name}.*.tmp"):
            orphan.unlink(missing_ok=True)  # of a run that was killed; one at work on the same zip holds its rows then
        with pq.ParquetWriter(
            staged, ROWS.with_metadata({_KEY: json.dumps(about)}), compression="zstd", write_page_checksum=True
        ) as writer:
            for part in listing.parts:
                writer.write_table(listing.of_part(part), row_group_size=max(1, part.rows))
        move_into_place(staged, file)
    except OSError:
        with contextlib.suppress(OSError):
            staged.unlink(missing_ok=True)
        return None, listing
    return file, None
