"""Reuse vectors by the digest of their text, from the month's previous file or an interrupted run.

The vectors of an unfinished month are in shards, files of about 1,000 texts, so that a killed run
loses only one. A shard's name is the digest of its content: a torn or damaged shard does not match
it and is computed again.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline.errors import PermanentFailure
from pipeline.storage.provenance import read_provenance
from pipeline.storage.reading import open_parquet
from pipeline.storage.store import DataPath
from pipeline.storage.writing import write_whole
from pipeline.tables import EMBEDDINGS
from pipeline.text import one_line

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

VECTORS = ("dense", "sparse_ids", "sparse_weights", "colbert", "truncated")
# Texts of a shard. With the window that the embedder has under way, a kill costs about 2,000 texts.
# They are 3 MB of BGE-M3's vectors: a quarter second of a fast GPU, and a day of 2,000,000 texts
# makes 2,000 files.
TEXTS = 1_000
_SUFFIX = ".parquet"
_SCHEMA = pa.schema(
    [EMBEDDINGS.schema.field(name).remove_metadata() for name in ("text_sha256", *VECTORS)]
)


@dataclass(frozen=True, slots=True)
class VectorRowGroup:
    """A row group of a Parquet file of vectors, read on demand. month: for messages.

    Reading raises PermanentFailure where the file is damaged.
    """

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
            reason = one_line(str(error))
            raise PermanentFailure(
                f"{self.file} is damaged ({reason}), and vectors were to be taken over from it: "
                f"run citeloom run --months {self.month} --select embeddings --force"
            ) from error


def groups_of_month(
    file: DataPath, model: str, vectors: str, stage_version: int
) -> Iterator[VectorRowGroup]:
    """The row groups of a month of embeddings; none where it is absent, or was computed by another
    version, by another model or with other kinds of vectors.

    model: the embedder's name. vectors: which kinds there are, as the file's inputs state them.
    Raises PermanentFailure where the file is no table of citeloom.
    """
    provenance = read_provenance(file)
    if provenance is None:
        return
    versions = (provenance.schema_version, provenance.stage_version)
    if versions != (EMBEDDINGS.version, stage_version):
        return
    # A file of an earlier version may have ColBERT vectors too, which come last.
    kinds = provenance.inputs.get("vectors", "")
    if provenance.notes.get("model") != model or not kinds.startswith(vectors):
        return
    with open_parquet(file) as parquet:
        count = parquet.metadata.num_row_groups
    for number in range(count):
        yield VectorRowGroup(file, number, file.stem)


class KnownVectors:
    """The vectors of those texts of a month that were computed before, for any passage.

    text_sha256: of the month's texts. Two groups are held in memory, so rows that are taken in the
    order of their groups are read once. Of two rows of one text, the first is used.
    """

    def __init__(self, groups: Sequence[VectorRowGroup], text_sha256: pa.ChunkedArray) -> None:
        import numpy as np

        self._groups = groups
        digests = [group.digests() for group in groups]
        self._starts = np.cumsum([0, *map(len, digests)])
        # Looking up 300,000 digests among 300,000 takes 0.3 s, and 130 bytes for each meanwhile.
        known_digests = pa.chunked_array(
            [chunk for column in digests for chunk in column.chunks], pa.string()
        )
        rows = pc.index_in(text_sha256, value_set=known_digests).fill_null(-1)
        self.rows: NDArray[np.int64] = rows.to_numpy().astype(np.int64)
        """For every text of the month the row that holds its vectors, or -1."""
        self._vectors = lru_cache(maxsize=2)(self._read)

    def take(self, rows: NDArray[np.int64]) -> pa.Table:
        """The vectors of these rows, in their order; each group is read once however the rows are
        mixed.
        """
        import numpy as np

        groups = np.searchsorted(self._starts, rows, side="right") - 1
        parts, order = [], np.empty(len(rows), np.int64)
        filled = 0
        for group in np.unique(groups):
            places = np.flatnonzero(groups == group)
            parts.append(self._vectors(int(group)).take(rows[places] - self._starts[group]))
            order[places] = np.arange(filled, filled + len(places))
            filled += len(places)
        return pa.concat_tables(parts).take(order)

    def _read(self, group: int) -> pa.Table:
        return self._groups[group].vectors()


class Shards:
    """The shards of one month in a folder of their own, which one process uses at a time: it holds
    the month's lock.

    made_by: what the vectors depend on beside their text, such as the model; shards with another
    `made_by` are removed as soon as they are read. Holds the vectors of less than one shard, and
    those that are being added.
    """

    def __init__(self, folder: Path, made_by: Mapping[str, str]) -> None:
        self._folder = folder
        self._schema = _SCHEMA.with_metadata(dict(made_by))
        self._waiting: list[pa.Table] = []

    def whole(self) -> Iterator[VectorRowGroup]:
        """The shards that an earlier run left, by name; other files of the folder are removed."""
        if not self._folder.is_dir():
            return
        for file in sorted(self._folder.glob("*")):
            if self._is_whole(file):
                yield VectorRowGroup(file, 0, self._folder.name)
            else:
                file.unlink()

    def _is_whole(self, file: Path) -> bool:
        content = file.read_bytes()
        if file.name != _name(content):
            return False
        schema = pq.read_schema(pa.BufferReader(content))
        return bool(schema.equals(self._schema) and schema.metadata == self._schema.metadata)

    def keep(self, text_sha256: pa.Array, vectors: pa.Table) -> None:
        """Take the vectors of some texts; a shard is written as soon as enough are there."""
        if not len(text_sha256):
            return
        self._waiting.append(
            vectors.select(VECTORS).add_column(0, _SCHEMA.field(0), text_sha256).cast(self._schema)
        )
        if sum(rows.num_rows for rows in self._waiting) >= TEXTS:
            self.write()

    def write(self) -> None:
        """Write the vectors that do not fill a shard yet."""
        rows, self._waiting = self._waiting, []
        if not rows:
            return
        sink = pa.BufferOutputStream()
        pq.write_table(pa.concat_tables(rows), sink, compression="none", use_dictionary=False)
        content = sink.getvalue().to_pybytes()
        write_whole(self._folder / _name(content), content)

    def remove(self) -> None:
        """Remove all of the month's shards."""
        self._waiting = []
        shutil.rmtree(self._folder, ignore_errors=True)


def _name(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest() + _SUFFIX
