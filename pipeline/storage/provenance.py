"""Provenance: what made a month of a table, kept in the metadata of its file."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.errors import PermanentFailure
from pipeline.storage.reading import FOOTER_BYTES
from pipeline.storage.store import DataPath, StorePath, file_version, has_listing_cache

METADATA_KEY = b"citeloom"


@dataclass(frozen=True, slots=True)
class Provenance:
    """The provenance of a file: versions, settings, inputs with their digests, row counts."""

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


def read_provenance(file: DataPath) -> Provenance | None:
    """The provenance of a file; None where it does not exist.

    Raises PermanentFailure where citeloom did not write it.

    A file on a disk is read once for each version of it. On a store it takes one request; within
    `listing_cache` none for a file whose provenance was read before.
    """
    try:
        if isinstance(file, Path):
            return _provenance_of_version(file, file_version(file))
        text = _cached_footer(file, file.stat().etag) if has_listing_cache() else _read_footer(file)
    except FileNotFoundError:
        return None
    except (OSError, pa.ArrowInvalid, ValueError) as error:
        raise foreign_file(file, error) from error
    return _parsed(text, file)


# The status of a month of `references` asks for the metadata of all earlier months: over 424 months
# 90,000 footers would be read, at 0.2 ms each, instead of 424.
@lru_cache(maxsize=1 << 14)
def _provenance_of_version(file: Path, version: object) -> Provenance:
    """The provenance of a file on a disk. version: differs once the file was rewritten."""
    return provenance_in(pq.read_metadata(file), file)


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


def _parsed(text: bytes, file: DataPath) -> Provenance:
    try:
        return Provenance(**json.loads(text))
    except (TypeError, ValueError) as error:
        raise foreign_file(file, error) from error


def _read_footer(file: StorePath) -> bytes:
    """The provenance in a Parquet file's footer."""
    end = file.read_end(FOOTER_BYTES)
    # A Parquet file ends with its footer, the footer's length in four bytes, and PAR1.
    length = int.from_bytes(end[-8:-4], "little") + 8
    if len(end) < length and len(end) == FOOTER_BYTES:
        end = file.read_end(length)
    return _entry(pq.read_metadata(pa.BufferReader(end)), file)


@lru_cache(maxsize=1 << 12)
def _cached_footer(file: StorePath, etag: str) -> bytes:
    """As `_read_footer`, cached on this machine's disk while the file's etag is the same."""
    name = hashlib.sha256(f"{file} {METADATA_KEY!r}".encode()).hexdigest()[:32]
    cache_file = file.local / "cache" / "notes" / f"{name}.json"
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        cached = json.loads(cache_file.read_bytes())
        if cached["mark"] == etag:
            return str(cached["note"]).encode()
    text = _read_footer(file)
    with contextlib.suppress(OSError):  # it is only a cache
        cache_file.parent.mkdir(parents=True, exist_ok=True)
        staged = cache_file.with_suffix(f".{os.getpid()}.tmp")
        staged.write_text(json.dumps({"mark": etag, "note": text.decode()}))
        os.replace(staged, cache_file)
    return text
