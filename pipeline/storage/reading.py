"""Parquet files of the data root, opened wherever they lie."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.storage.store import Place, StorePath, is_looking

# Of a file on a store, fetched at once where its end is read: the footer of 100 row groups of 20 columns has 150 KB,
# that of most months under 30.
_END = 64 << 10


@contextlib.contextmanager
def open_file(file: Place) -> Iterator[Any]:
    """What pyarrow's readers take for a file; it may be read more than once. Raises FileNotFoundError."""
    if isinstance(file, Path):
        yield file
        return
    with file.opened(_END) as source, pa.PythonFile(source, mode="r") as opened:
        yield opened


@contextlib.contextmanager
def open_parquet(file: Place, *, pre_buffer: bool = True) -> Iterator[pq.ParquetFile]:
    """A Parquet file. pre_buffer: whether column chunks are fetched ahead, and kept. Raises what pyarrow raises."""
    with open_file(file) as source, pq.ParquetFile(source, pre_buffer=pre_buffer) as parquet:
        yield parquet


def read_table(file: Place, columns: list[str] | None = None, filters: Any = None) -> pa.Table:
    """The rows of a Parquet file, or those that filters let through. Raises what pyarrow raises."""
    with open_file(file) as source:
        return pq.read_table(source, columns=columns, filters=filters)


def read_note(file: Place, key: bytes) -> bytes | None:
    """What a Parquet file's metadata hold under a key; None where there is no file.

    On a store one request; within `looking_once` none for a file that was read before, by whatever process. Raises
    KeyError where nothing is held under the key, and what pyarrow raises.
    """
    if isinstance(file, Path):
        return bytes((pq.read_metadata(file).metadata or {})[key]) if file.exists() else None
    try:
        return _kept_note(file, file.stat().mark, key) if is_looking() else _note_of(file, key)
    except FileNotFoundError:
        return None


def _note_of(file: StorePath, key: bytes) -> bytes:
    end = file.read_end(_END)
    # The last eight bytes of a Parquet file: how long the footer before them is, and PAR1.
    length = int.from_bytes(end[-8:-4], "little") + 8
    if len(end) < length and len(end) == _END:
        end = file.read_end(length)
    return bytes((pq.read_metadata(pa.BufferReader(end)).metadata or {})[key])


@lru_cache(maxsize=1 << 12)
def _kept_note(file: StorePath, mark: str, key: bytes) -> bytes:
    """As `_note_of`; kept on this machine's disk, where it counts as long as the file's mark is the same."""
    name = hashlib.sha256(f"{file} {key!r}".encode()).hexdigest()[:32]
    kept = file.local / "cache" / "notes" / f"{name}.json"
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        told = json.loads(kept.read_bytes())
        if told["mark"] == mark:
            return str(told["note"]).encode()
    note = _note_of(file, key)
    with contextlib.suppress(OSError):  # it is a cache
        kept.parent.mkdir(parents=True, exist_ok=True)
        staged = kept.with_suffix(f".{os.getpid()}.tmp")
        staged.write_text(json.dumps({"mark": mark, "note": note.decode()}))
        os.replace(staged, kept)
    return note
