"""Vectors that were made before, found again by the digest of the text they were made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.errors import PermanentFailure
from pipeline.storage.provenance import read_provenance
from pipeline.storage.reading import open_parquet
from pipeline.storage.store import DataPath
from pipeline.tables import EMBEDDINGS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

VECTORS = ("dense", "sparse_ids", "sparse_weights", "colbert", "truncated")


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Some thousand rows of vectors of a month in a Parquet file, read when they are asked for. Reading them raises
    PermanentFailure where the file is damaged."""

    file: DataPath
    number: int
    month: str

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
                f"run citeloom run --months {self.month} --select embeddings --force"
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
        yield from (RowGroup(file, number, file.stem) for number in range(count))


class KnownVectors:
    """The vectors of those of a month's texts that were made before, whatever passage they were of.

    text_sha256: of the month's texts. Holds the vectors of two groups: what is asked for in the order of its groups is
    read once. Of two rows of one text, the first is taken.
    """

    def __init__(self, groups: Sequence[RowGroup], text_sha256: pa.ChunkedArray) -> None:
        import numpy as np

        self._groups = groups
        digests = [group.digests() for group in groups]
        self._starts = np.cumsum([0, *map(len, digests)])
        # 300,000 digests are found among 300,000 in 0.3 s, with 130 bytes for each until then.
        known = pa.chunked_array([chunk for column in digests for chunk in column.chunks], pa.string())
        found = pc.index_in(text_sha256, value_set=known).fill_null(-1)
        self.rows: NDArray[np.int64] = found.to_numpy().astype(np.int64)
        """For every text of the month the row that holds its vectors, or -1."""
        self._vectors = lru_cache(maxsize=2)(self._read)

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
