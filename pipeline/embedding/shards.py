"""The vectors of an unfinished month, kept in files of about 1,000 texts, so that a killed run loses no more than one.

A shard bears the digest of its content as its name: one that was torn or damaged does not match and is made anew. Not
here: which texts are encoded (`stages`), and finding a text's vectors again (`reuse`).
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.embedding.reuse import VECTORS, RowGroup
from pipeline.storage.writing import write_whole
from pipeline.tables import EMBEDDINGS

# With the window that the embedder has under way, what a kill costs is then about 2,000 texts. They are 3 MB of
# BGE-M3's vectors: a quarter second of a fast GPU, and a day of 2,000,000 texts makes 2,000 files.
TEXTS = 1_000
_SUFFIX = ".parquet"
_SCHEMA = pa.schema([EMBEDDINGS.schema.field(name).remove_metadata() for name in ("text_sha256", *VECTORS)])


class Shards:
    """The shards of one month in a folder of their own. One process at a time; the month's lock sees to that.

    made_by: what the vectors depend on beside their text, such as the model; shards that were made otherwise are
    removed as soon as they are met. Holds the vectors of less than one shard beside what is being kept.
    """

    def __init__(self, folder: Path, made_by: Mapping[str, str]) -> None:
        self._folder = folder
        self._schema = _SCHEMA.with_metadata(dict(made_by))
        self._waiting: list[pa.Table] = []

    def whole(self) -> Iterator[RowGroup]:
        """The shards that an earlier run left, by name; whatever else lies in the folder is removed."""
        for file in sorted(self._folder.glob("*")) if self._folder.is_dir() else ():
            if self._is_whole(file):
                yield RowGroup(file, 0, self._folder.name)
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
        self._waiting.append(vectors.select(VECTORS).add_column(0, _SCHEMA.field(0), text_sha256).cast(self._schema))
        if sum(rows.num_rows for rows in self._waiting) >= TEXTS:
            self.write()

    def write(self) -> None:
        """Write what waits for its shard to fill."""
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
