"""Provenance: what made a month of a table, kept in the metadata of its file."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline.errors import PermanentFailure
from pipeline.storage.read_cache import is_active, once, remember
from pipeline.storage.reading import FOOTER_BYTES, open_file
from pipeline.storage.store import DataPath, file_version
from pipeline.system_names import EARLIER_NAMES, present_name

METADATA_KEY = b"citeloom"

Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)


@dataclass(frozen=True, slots=True)
class Provenance:
    """The provenance of a file: versions, settings, inputs with their digests, row counts.

    earlier_names: whether its rows, and the ledger's, have the names of `EARLIER_NAMES`.
    """

    table: str
    month: str
    schema_version: int
    stage_version: int
    code_version: str
    fingerprint: str
    settings: Mapping[str, Any]
    inputs: Mapping[str, str]
    rows: int = 0
    rows_sha256: str = ""
    left_out: Mapping[str, int] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)
    earlier_names: bool = False


def read_provenance(file: DataPath) -> Provenance | None:
    """The provenance of a file; None where it does not exist.

    Raises PermanentFailure where citeloom did not write it.

    A file on a disk is read once for each version of it. On a store it takes one request; within
    `read_cache` none for a file whose provenance was read before.
    """
    return once("provenance", partial(_read_provenance, file), file)


def read_rows_sha256(file: DataPath) -> str | None:
    """The digest of a file's rows; None where it does not exist. Raises as `read_provenance` does.

    Within `read_cache`, digests of thousands of files are kept without the rest of what the files
    record: a month looks up those of a few tables in all months.
    """
    if not is_active():
        provenance = read_provenance(file)
        return provenance.rows_sha256 if provenance else None
    with _foreign_errors(file):
        return _rows_sha256_of_version(file, str(file_version(file)))
    return None


def _read_provenance(file: DataPath) -> Provenance | None:
    with _foreign_errors(file):
        if isinstance(file, Path) or is_active():
            return _provenance_of_version(file, str(file_version(file)))
        return _parsed(_read_footer(file), file)
    return None


@contextlib.contextmanager
def _foreign_errors(file: DataPath) -> Iterator[None]:
    """End the block where the file does not exist. Raise PermanentFailure where citeloom did not
    write it.
    """
    try:
        yield
    except FileNotFoundError:
        return
    except (OSError, pa.ArrowInvalid, ValueError) as error:
        raise foreign_file(file, error) from error


@lru_cache(maxsize=1 << 13)
def _rows_sha256_of_version(file: DataPath, version: str) -> str:
    return _provenance_of_version(file, version).rows_sha256


# Each takes 2.5 KB.
@lru_cache(maxsize=1 << 10)
def _provenance_of_version(file: DataPath, version: str) -> Provenance:
    """The provenance of a file. version: differs once the file was rewritten."""
    text = remember(f"footer of {file}", version, lambda: _read_footer(file).decode())
    return _parsed(text, file)


def provenance_in(metadata: pq.FileMetaData, file: DataPath) -> Provenance:
    """The provenance in a file's footer. Raises PermanentFailure where citeloom did not write
    it.
    """
    return _parsed(_entry(metadata, file), file)


def foreign_file(file: DataPath, reason: object) -> PermanentFailure:
    """The error for a file in a table's place that citeloom did not write."""
    return PermanentFailure(
        f"{file} is not a table that citeloom wrote ({reason}): move it away and run again"
    )


def _entry(metadata: pq.FileMetaData, file: DataPath) -> bytes:
    """The text of the provenance in a footer."""
    text = (metadata.metadata or {}).get(METADATA_KEY)
    if text is None:
        raise foreign_file(file, f"its footer has no entry {METADATA_KEY.decode()}")
    return bytes(text)


def _parsed(text: bytes | str, file: DataPath) -> Provenance:
    """The provenance of a text, with the present names of its parts. One that does not say which
    names the file has is of before there were two.
    """
    try:
        provenance = Provenance(**{"earlier_names": True, **json.loads(text)})
    except (TypeError, ValueError) as error:
        raise foreign_file(file, error) from error
    if not provenance.earlier_names or "parts" not in provenance.notes:
        return provenance
    parts = {present_name(name): part for name, part in provenance.notes["parts"].items()}
    return replace(provenance, notes={**provenance.notes, "parts": parts})


def with_present_names(rows: Rows, metadata: pq.FileMetaData, file: DataPath) -> Rows:
    """Rows of a file or a ledger, of which `metadata` is the footer, with the present names of
    systems in `system`, or at the end of `subject`.
    """
    for column, before in (("system", "^"), ("subject", " ")):
        place = rows.schema.get_field_index(column)
        if place < 0 or not provenance_in(metadata, file).earlier_names:
            continue
        names = rows.column(place)
        for name, earlier in EARLIER_NAMES.items():
            pattern = f"({before}){earlier}(@|$)"
            names = pc.replace_substring_regex(names, pattern, rf"\1{name}\2")
        rows = rows.set_column(place, rows.schema.field(place), names)
    return rows


def _read_footer(file: DataPath) -> bytes:
    """The provenance in a Parquet file's footer."""
    if isinstance(file, Path):
        with open_file(file) as source:
            return _entry(pq.read_metadata(source), file)
    end = file.read_end(FOOTER_BYTES)
    # A Parquet file ends with its footer, the footer's length in four bytes, and PAR1.
    length = int.from_bytes(end[-8:-4], "little") + 8
    if len(end) < length and len(end) == FOOTER_BYTES:
        end = file.read_end(length)
    return _entry(pq.read_metadata(pa.BufferReader(end)), file)
