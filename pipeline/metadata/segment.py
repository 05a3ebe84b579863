"""A piece of the catalogue: papers by the keys of their titles and DOIs, in memory or mapped from one Arrow file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
from xxhash import xxh3_128

from pipeline.metadata.dois import split_dois
from pipeline.metadata.titles import doi_key, surname, title_keys, title_words, window_key
from pipeline.storage.writing import move_into_place

_AUTHORS_CHECKED = 20
_CHUNK_BYTES, _DIGEST_BYTES = 1 << 20, 16
# One row of lists: columns of different lengths in one file, each contiguous, so that it can be mapped as it lies.
_TEXTS, _NUMBERS = pa.large_list(pa.large_string()), pa.large_list(pa.int32())
_SCHEMA = pa.schema(
    [
        ("keys", pa.large_list(pa.uint64())),
        ("owners", _NUMBERS),
        ("arxiv_id", _TEXTS),
        ("title", _TEXTS),
        ("surnames", _TEXTS),
        ("dois", _TEXTS),
        ("year", _NUMBERS),
    ]
)
_PAPER = ("arxiv_id", "title", "surnames", "dois", "year")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A paper that an item may cite: its title and its authors' surnames folded, with blanks between words."""

    arxiv_id: str
    title: str
    surnames: str
    dois: str
    year: int

    @property
    def words(self) -> list[str]:
        return self.title.split()


class Segment:
    """Papers and the keys that lead to them, keys sorted."""

    def __init__(self, keys: np.ndarray, owners: np.ndarray, columns: Mapping[str, pa.Array]) -> None:
        self._keys, self._owners, self._columns = keys, owners, columns

    def __len__(self) -> int:
        return len(self._columns["arxiv_id"])

    @classmethod
    def from_rows(cls, rows: Iterable[Mapping[str, Any]], month: str) -> Segment:
        """Rows of a month of metadata (arxiv_id, title, authors, doi, published)."""
        keys: list[int] = []
        owners: list[int] = []
        papers: dict[str, list[Any]] = {name: [] for name in _PAPER}
        for row in rows:
            words, dois = title_words(row["title"] or ""), split_dois(row["doi"])
            found = [*title_keys(words), *filter(None, [window_key(words)]), *map(doi_key, dois)]
            if found:
                keys += found
                owners += [len(papers["arxiv_id"])] * len(found)
                _append(papers, row, words, dois, month)
        return cls._sorted(np.array(keys, dtype=np.uint64), np.array(owners, dtype=np.int32), _arrays(papers))

    @classmethod
    def merged(cls, parts: Sequence[Segment]) -> Segment:
        """All papers of several segments, in their order."""
        starts = np.cumsum([0, *(len(part) for part in parts)])
        owners = [part._owners + np.int32(start) for part, start in zip(parts, starts, strict=False)]
        columns = {name: pa.concat_arrays([part._columns[name] for part in parts]) for name in _PAPER}
        return cls._sorted(np.concatenate([part._keys for part in parts]), np.concatenate(owners), columns)

    @classmethod
    def _sorted(cls, keys: np.ndarray, owners: np.ndarray, columns: Mapping[str, pa.Array]) -> Segment:
        order = np.argsort(keys, kind="stable")
        return cls(keys[order], owners[order], columns)

    def write(self, file: Path) -> None:
        """Write the segment, whole or not at all; one process at a time."""
        columns = {"keys": pa.array(self._keys), "owners": pa.array(self._owners), **self._columns}
        lists = [
            pa.LargeListArray.from_arrays(pa.array([0, len(columns[name])]), columns[name]) for name in _SCHEMA.names
        ]
        staged = file.with_name(f".{file.name}.tmp")
        with pa.OSFile(str(staged), "wb") as sink, pa.ipc.new_file(sink, _SCHEMA) as writer:
            writer.write_batch(pa.RecordBatch.from_arrays(lists, schema=_SCHEMA))
        with staged.open("r+b") as content:
            content.write(_digest(content))  # behind what it is of
        move_into_place(staged, file)

    @classmethod
    def open(cls, file: Path) -> Segment:
        """Map a segment into memory. Raises OSError or pyarrow.ArrowInvalid where the file is none, or damaged."""
        size = file.stat().st_size - _DIGEST_BYTES
        with file.open("rb") as content:
            if size < 0 or _digest(content, size) != content.read():
                raise pa.ArrowInvalid(f"{file} is not as it was written")
        batch = pa.ipc.open_file(pa.memory_map(str(file), "r").read_buffer(size)).get_batch(0)
        columns = {name: batch.column(name).values for name in _SCHEMA.names}
        keys, owners = columns.pop("keys").to_numpy(), columns.pop("owners").to_numpy()
        return cls(keys, owners, columns)

    def find(self, asked: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(positions in `asked`, papers) of every key that is there; `asked` is sorted (uint64)."""
        first = np.searchsorted(self._keys, asked, "left")
        inside = np.flatnonzero(first < len(self._keys))
        hits = inside[self._keys[first[inside]] == asked[inside]]
        counts = np.searchsorted(self._keys, asked[hits], "right") - first[hits]
        places = np.repeat(first[hits] - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        return np.repeat(hits, counts), self._owners[places]

    def paper(self, number: int) -> Candidate:
        """One paper by its number."""
        return Candidate(*(self._columns[name][number].as_py() for name in _PAPER))


def _digest(content: BinaryIO, size: int | None = None) -> bytes:
    """A digest of the first `size` bytes of a file, else of all; read and not mapped, so that memory does not grow.

    Arrow trusts its files: one with 4 KB of noise in it gave wrong papers, strange errors, or ended the process.
    """
    digest, left = xxh3_128(), size
    while chunk := content.read(_CHUNK_BYTES if left is None else min(_CHUNK_BYTES, left)):
        digest.update(chunk)
        left = None if left is None else left - len(chunk)
    return digest.digest()


def _append(
    papers: dict[str, list[Any]], row: Mapping[str, Any], words: list[str], dois: list[str], month: str
) -> None:
    surnames = filter(None, map(surname, (row["authors"] or ())[:_AUTHORS_CHECKED]))
    values = row["arxiv_id"], " ".join(words), " ".join(surnames), " ".join(dois), int((row["published"] or month)[:4])
    for name, value in zip(_PAPER, values, strict=True):
        papers[name].append(value)


def _arrays(papers: Mapping[str, list[Any]]) -> dict[str, pa.Array]:
    return {name: pa.array(papers[name], _SCHEMA.field(name).type.value_type) for name in _PAPER}
