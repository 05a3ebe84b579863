"""Vectors that were made before, found again by the digest of the text they were made of."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from pipeline.errors import PermanentFailure
from pipeline.storage.provenance import read_provenance
from pipeline.storage.reading import open_parquet
from pipeline.storage.store import DataPath
from pipeline.tables import EMBEDDINGS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

VECTORS = ("dense", "sparse_ids", "sparse_weights", "colbert", "truncated")


class Group(Protocol):
    """Some thousand rows of vectors in a file, read when they are asked for."""

    def digests(self) -> pa.ChunkedArray:
        """The column text_sha256."""
        ...

    def vectors(self) -> pa.Table:
        """The columns VECTORS."""
        ...


@dataclass(frozen=True, slots=True)
class RowGroup:
    """One row group of a month of embeddings. Reading it raises PermanentFailure where the file is damaged."""

    file: DataPath
    number: int

    def digests(self) -> pa.ChunkedArray:
        """The column text_sha256."""
        return self._read(["text_sha256"]).column("text_sha256")

    def vectors(self) -> pa.Table:
        """The columns VECTORS."""
        return self._read(list(VECTORS)).select(VECTORS)

    def _read(self, columns: list[str]) -> pa.Table:
        try:
            with open_parquet(self.file) as parquet:
                return parquet.read_row_group(self.number, columns=columns)
        except (OSError, pa.ArrowInvalid) as error:
            reason = " ".join(str(error).split())
            raise PermanentFailure(
                f"{self.file} is damaged ({reason}), and vectors were to be taken over from it: "
                f"run citeloom run --months {self.file.stem} --select embeddings --force"
            ) from error


def groups_of_month(file: DataPath, model: str, vectors: str, stage_version: int) -> Iterator[RowGroup]:
    """The row groups of a month of embeddings; none where it is absent or its vectors are not those of today.

    model: the embedder's name. vectors: which kinds there are, as the file's inputs state them. Raises
    PermanentFailure where the file is no table of citeloom.
    """
    written = read_provenance(file)
    if written is None or (written.schema_version, written.stage_version) != (EMBEDDINGS.version, stage_version):
        return
    if (written.notes.get("model"), written.inputs.get("vectors")) == (model, vectors):
        with open_parquet(file) as parquet:
            count = parquet.metadata.num_row_groups
        yield from (RowGroup(file, number) for number in range(count))


class KnownVectors:
    """Rows of vectors by the digest of their text, whatever passage it was of.

    Holds 16 bytes a row (a month of 20,000 papers has about 1,000,000: 16 MB) and the vectors of two groups. What is
    asked for in the order of its groups is read once. Of two rows of one text, the first is taken.
    """

    def __init__(self, groups: Sequence[Group]) -> None:
        import numpy as np

        self._groups = groups
        digests = [_fold(group.digests()) for group in groups]
        self._starts = np.cumsum([0, *map(len, digests)])
        folded = np.concatenate([np.empty(0, _FOLDED), *digests])
        # Stable, so that of equal keys the first row is found.
        order = np.argsort(folded["key"], kind="stable").astype(np.uint32)
        self._keys, self._checks, self._rows = folded["key"][order], folded["check"][order], order
        self._vectors = lru_cache(maxsize=2)(self._read)

    def start_of(self, group: int) -> int:
        """The row that a group begins with; of the group after the last, how many rows there are."""
        return int(self._starts[group])

    def find(self, text_sha256: pa.Array) -> NDArray[np.int64]:
        """For every digest the row that holds its vectors, or -1."""
        import numpy as np

        wanted = _fold(text_sha256)
        if not len(self._keys):
            return np.full(len(wanted), -1, np.int64)
        places = np.searchsorted(self._keys, wanted["key"])
        places[places == len(self._keys)] = 0
        found = (self._keys[places] == wanted["key"]) & (self._checks[places] == wanted["check"])
        return np.where(found, self._rows[places].astype(np.int64), -1)

    def take(self, rows: NDArray[np.int64]) -> pa.Table:
        """The vectors of these rows, in their order; each group is read once however the rows are mixed."""
        import numpy as np

        groups = np.searchsorted(self._starts, rows, side="right") - 1
        parts, order = [], np.empty(len(rows), np.int64)
        filled = 0
        for group in np.unique(groups):
            mine = np.flatnonzero(groups == group)
            parts.append(self._vectors(int(group)).take(rows[mine] - self._starts[group]))
            order[mine] = np.arange(filled, filled + len(mine))
            filled += len(mine)
        return pa.concat_tables(parts).take(order)

    def _read(self, group: int) -> pa.Table:
        return self._groups[group].vectors()


# 96 bits of a digest: that two of 1,000,000 texts share them by chance happens once in 10^17 months.
_FOLDED = [("key", "<u8"), ("check", "<u4")]


def _fold(text_sha256: pa.Array) -> NDArray[np.void]:
    import numpy as np

    digests = (hashlib.blake2b(text.encode(), digest_size=12).digest() for text in text_sha256.to_pylist())
    return np.frombuffer(b"".join(digests), dtype=_FOLDED)
