"""Vectors of a month's previous file, found again for passages that did not change.

Not here: when a month is computed again (`pipeline.stages`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.tables import EMBEDDINGS, read_provenance

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_VECTORS = ("dense", "sparse_ids", "sparse_weights", "colbert", "truncated")


class PreviousVectors:
    """The rows of an embeddings file, by passage and text.

    Holds 16 bytes per passage (a month of 20,000 papers has about 1,000,000: 16 MB) and two row groups; passages
    come in the file's order, so each group is read about once. A file that is absent, of another model, another
    schema or without the ColBERT vectors that are asked for has nothing to give, and so has None.
    """

    def __init__(self, file: Path | None, model: str, colbert: bool) -> None:
        self._model, self._colbert = model, colbert
        self._file = file if file is not None and _usable(file, model) else None
        self._keys, self._places = _keys(self._file)
        self._group = lru_cache(maxsize=2)(self._read_group)

    def find(self, wanted: Sequence[tuple[str, str]]) -> dict[str, dict[str, Any]]:
        """The vector columns by passage id, for those (passage id, text SHA-256) whose vectors are there."""
        found = {}
        for passage_id, text_sha256 in wanted:
            row = self._row(_key(passage_id))
            if row is not None and self._fits(row, passage_id, text_sha256):
                found[passage_id] = {name: row[name] for name in _VECTORS}
        return found

    def _fits(self, row: dict[str, Any], passage_id: str, text_sha256: str) -> bool:
        same = (row["passage_id"], row["text_sha256"], row["model"]) == (passage_id, text_sha256, self._model)
        return same and (row["colbert"] is not None) == self._colbert

    def _row(self, key: int) -> dict[str, Any] | None:
        import numpy as np

        place = int(np.searchsorted(self._keys, np.uint64(key)))
        if place == len(self._keys) or int(self._keys[place]) != key:
            return None
        group, offset = divmod(int(self._places[place]), 1 << 32)
        return self._group(group)[offset]

    def _read_group(self, group: int) -> list[dict[str, Any]]:
        import pyarrow.parquet as pq

        with pq.ParquetFile(self._file) as parquet:
            rows: list[dict[str, Any]] = parquet.read_row_group(group).to_pylist()
            return rows


def _usable(file: Path, model: str) -> bool:
    written = read_provenance(file)
    return written is not None and written.schema_version == EMBEDDINGS.version and written.notes.get("model") == model


def _key(passage_id: str) -> int:
    return int.from_bytes(hashlib.blake2b(passage_id.encode(), digest_size=8).digest(), "little")


def _keys(file: Path | None) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """The keys of a file's passages, ascending, and for each its row group (high 32 bits) and row in it."""
    import numpy as np
    import pyarrow.parquet as pq

    keys, places = [], []
    if file is not None:
        with pq.ParquetFile(file) as parquet:
            for group in range(parquet.num_row_groups):
                ids = parquet.read_row_group(group, columns=["passage_id"])["passage_id"].to_pylist()
                keys.append(np.array([_key(passage_id) for passage_id in ids], dtype=np.uint64))
                places.append(np.arange(len(ids), dtype=np.int64) + (group << 32))
    every = np.concatenate([np.empty(0, np.uint64), *keys])
    order = np.argsort(every, kind="stable")
    return every[order], np.concatenate([np.empty(0, np.int64), *places])[order]
