"""The pool's vectors, from the embeddings table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pipeline import tables
from pipeline.embedding.columns import SCHEMA
from pipeline.embedding.embedder import SparseRows
from pipeline.embedding.packing import offsets_of
from pipeline.errors import PermanentFailure
from pipeline.evaluation.retrieval.pool import Choice, Pool
from pipeline.index.papers import tables_of_papers

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipeline.engine.stage import Workspace

_DIGEST = "text_sha256"
_VECTORS = ["dense", "sparse_ids", "sparse_weights"]


@dataclass(frozen=True, slots=True, eq=False)
class Matrices:
    """Vectors of texts, a row each. dense: float32, (texts, dimensions). sparse: None where the model makes none."""

    dense: NDArray[np.float32]
    sparse: SparseRows | None


def pool_vectors(workspace: Workspace, choice: Choice, pool: Pool, model: str, *, has_sparse: bool) -> Matrices:
    """The vectors of the pool's passages by a model.

    Raises PermanentFailure where a month's embeddings are of earlier texts than its passages.
    """
    import numpy as np
    import pyarrow.compute as pc

    schema = pa.schema([pa.field(_DIGEST, pa.string()), *(SCHEMA.field(name) for name in _VECTORS)])
    parts = [schema.empty_table()]
    for found in tables_of_papers(workspace.root, tables.EMBEDDINGS, choice.months, [_DIGEST, "model", *_VECTORS]):
        parts.append(found.filter(pc.equal(found["model"], model)).select(schema.names).cast(schema))
    held = pa.concat_tables(parts)
    places = {digest: place for place, digest in enumerate(held[_DIGEST].to_pylist())}
    for row in pool.rows:
        if row[_DIGEST] not in places:
            month = choice.months[row["arxiv_id"]]
            raise PermanentFailure(
                f"embeddings of {month} lack {row['passage_id']}, a passage of {row['arxiv_id']}: "
                f"run `citeloom run --months {month} --until embeddings`"
            )
    rows = np.array([places[row[_DIGEST]] for row in pool.rows])
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


def _values(column: pa.ChunkedArray) -> NDArray[Any]:
    # Not of `column.values`, which holds the rows that were not taken, too.
    values: NDArray[Any] = column.combine_chunks().flatten().to_numpy(zero_copy_only=False)
    return values
