"""Vectors of the pool in any form of text: from the embeddings table, from a cache, or made now.

The cache is one file for each model and form, whole or absent, and holds no more than twice what a month searches.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from filelock import FileLock

from pipeline import tables
from pipeline.corpus.passages.text import Form, text_digest
from pipeline.embedding.columns import SCHEMA, vector_columns
from pipeline.embedding.embedder import SparseRows
from pipeline.embedding.packing import offsets_of
from pipeline.evaluation.retrieval.pool import Choice, Pool
from pipeline.index.papers import tables_of_papers
from pipeline.storage.writing import move_into_place

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipeline.embedding.embedder import Embedder
    from pipeline.engine.stage import Workspace

_DIGEST = "text_sha256"
_KEPT = ["dense", "sparse_ids", "sparse_weights"]
_SCHEMA = pa.schema([pa.field(_DIGEST, pa.string()), *(SCHEMA.field(name) for name in _KEPT)])


@dataclass(frozen=True, slots=True, eq=False)
class Matrices:
    """Vectors of texts, a row each. dense: float32, (texts, dimensions). sparse: None where the model makes none."""

    dense: NDArray[np.float32]
    sparse: SparseRows | None


@dataclass(frozen=True, slots=True)
class Cache:
    """Vectors by the digest of their text, of one model and one form. most: texts that it keeps."""

    file: Path
    most: int

    def read(self, wanted: Sequence[str] | None = None) -> pa.Table:
        """What it holds, or of that what is wanted; nothing where it is absent or cannot be read, for it can be made
        again."""
        import pyarrow.parquet as pq

        try:
            found = pq.read_table(self.file, filters=None if wanted is None else [(_DIGEST, "in", wanted)])
        except (OSError, pa.ArrowException):
            return _SCHEMA.empty_table()
        return found if found.schema.equals(_SCHEMA) else _SCHEMA.empty_table()

    def add(self, made: pa.Table, wanted: Sequence[str]) -> None:
        """Keep vectors that were made: those that are wanted now first, then what was there before."""
        import pyarrow.parquet as pq

        if not made.num_rows:
            return
        with FileLock(self.file.with_suffix(".lock"), timeout=600):
            held = pa.concat_tables([made, self.read()])
            staged = self.file.with_suffix(".tmp")
            pq.write_table(_wanted_first(held, wanted).slice(0, self.most), staged, compression="zstd")
            move_into_place(staged, self.file)


def cache_of(workspace: Workspace, model: str, form: Form) -> Cache:
    """The cache of a model and a form of text, in the data root."""
    readable = re.sub(r"[^A-Za-z0-9.]+", "-", model).strip("-.")[:40]
    name = f"{readable}-{hashlib.sha256(model.encode()).hexdigest()[:8]}-{form}.parquet"
    return Cache(workspace.cache("retrieval") / name, 2 * workspace.settings.retrieval_pool)


def pool_vectors(
    workspace: Workspace,
    choice: Choice,
    pool: Pool,
    form: Form,
    embedder: Embedder,
    *,
    afresh: bool = False,
    on_batch: Callable[[int], None] = lambda texts: None,
) -> Matrices:
    """The pool's vectors in a form; only texts whose vectors nobody has are encoded.

    afresh: leave the cache out of it. on_batch: called after every batch with the number of texts that it encoded.
    """
    texts = pool.texts(form)
    digests = [text_digest(text) for text in texts]
    cache = cache_of(workspace, embedder.name, form)
    known = [_SCHEMA.empty_table() if afresh else cache.read(digests)]
    if form == workspace.settings.embedded_form:
        known += _embedded(workspace, choice, embedder.name)
    held = pa.concat_tables(known)
    missing = dict(zip(digests, texts, strict=True))
    for digest in held[_DIGEST].to_pylist():
        missing.pop(digest, None)
    made = _encode(embedder, missing, cache, digests, on_batch)
    return _matrices(pa.concat_tables([held, made]), digests, has_sparse=embedder.has_sparse)


def _embedded(workspace: Workspace, choice: Choice, model: str) -> Iterator[pa.Table]:
    """The vectors of the embeddings table that are this model's."""
    import pyarrow.compute as pc

    for found in tables_of_papers(workspace.root, tables.EMBEDDINGS, choice.months, [_DIGEST, "model", *_KEPT]):
        yield found.filter(pc.equal(found["model"], model)).select(_SCHEMA.names).cast(_SCHEMA)


def _encode(
    embedder: Embedder, texts: Mapping[str, str], cache: Cache, wanted: Sequence[str], on_batch: Callable[[int], None]
) -> pa.Table:
    """The vectors of texts by digest. What is done when it ends, by a failure or Ctrl-C too, is in the cache."""
    digests, parts, done = list(texts), [_SCHEMA.empty_table()], 0
    if not texts:
        return parts[0]
    try:
        with closing(embedder.encode_stream(iter(texts.values()))) as batches:  # type: ignore[type-var]
            for batch in batches:
                mine = pa.array(digests[done : done + len(batch)])
                vectors = vector_columns(batch).select(_KEPT)
                parts.append(vectors.add_column(0, _SCHEMA.field(0), mine).cast(_SCHEMA))
                done += len(batch)
                on_batch(len(batch))
    finally:
        cache.add(pa.concat_tables(parts), wanted)
    return pa.concat_tables(parts)


def _wanted_first(held: pa.Table, wanted: Sequence[str]) -> pa.Table:
    """Each digest's first row: those that are wanted, then the others."""
    import numpy as np
    import pyarrow.compute as pc

    first = np.zeros(held.num_rows, np.bool_)
    first[list(_first_places(held[_DIGEST]).values())] = True
    now = pc.is_in(held[_DIGEST], pa.array(wanted, pa.string())).to_numpy()
    return pa.concat_tables([held.filter(pa.array(first & now)), held.filter(pa.array(first & ~now))])


def _matrices(held: pa.Table, digests: Sequence[str], *, has_sparse: bool) -> Matrices:
    import numpy as np

    places = _first_places(held[_DIGEST])
    rows = np.array([places[digest] for digest in digests])
    dense = matrix_of(held["dense"], rows)
    if not has_sparse:
        return Matrices(dense, None)
    sparse = held.select(["sparse_ids", "sparse_weights"]).take(pa.array(rows))
    lengths = sparse["sparse_ids"].combine_chunks().value_lengths().to_numpy(zero_copy_only=False)
    return Matrices(
        dense, SparseRows(offsets_of(lengths), _values(sparse["sparse_ids"]), _values(sparse["sparse_weights"]))
    )


def matrix_of(column: pa.ChunkedArray, rows: NDArray[np.int64]) -> NDArray[np.float32]:
    """Some rows of a column of lists of one length, as a matrix; one chunk at a time.

    Arrow would join all chunks to take rows from them, which fails beyond 2^31 numbers: two million rows of 1,024.
    """
    import numpy as np

    found = np.empty((len(rows), len(column[0])), np.float32)
    order = np.argsort(rows)
    ends = np.cumsum([len(chunk) for chunk in column.chunks])
    bounds = np.searchsorted(rows[order], [0, *ends])
    for number, chunk in enumerate(column.chunks):
        mine = order[bounds[number] : bounds[number + 1]]
        if len(mine):
            numbers = chunk.flatten().to_numpy(zero_copy_only=False).reshape(len(chunk), -1)
            found[mine] = numbers[rows[mine] - (ends[number] - len(chunk))]
    return found


def _first_places(digests: pa.ChunkedArray) -> dict[str, int]:
    """Digest → the first place that has it."""
    return {digest: place for place, digest in reversed(list(enumerate(digests.to_pylist())))}


def _values(column: pa.ChunkedArray) -> NDArray[Any]:
    # Not of `column.values`, which holds the rows that were not taken, too.
    values: NDArray[Any] = column.combine_chunks().flatten().to_numpy(zero_copy_only=False)
    return values
