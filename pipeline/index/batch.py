"""Points to load, as columns of many passages, and the checks that they pass before an engine receives them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipeline.errors import PermanentFailure

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipeline.embedding.embedder import SparseRows
    from pipeline.index.passage_index import Layout

# Size of one request: 4 MB are 700 points of BGE-M3; a server accepts 32 MB.
BYTES = 4 << 20
# Id and payload of a point, a dozen fields.
_PAYLOAD_BYTES = 700


@dataclass(frozen=True, slots=True, eq=False)
class PointBatch:
    """Points by columns; point number n has the rows offsets[n]:offsets[n + 1] of what is ragged.

    ids: passage ids. dense: float32 of shape (points, dimensions). lexical: of stemmed words. payloads: what a search
    restricts or shows; `digest` in it is of the whole point. sparse: of the model's lexical head, None where the
    collection has none. colbert_offsets: int64 of shape (points + 1,) into colbert, float32 of shape (tokens,
    dimensions); both None where the collection has none.
    """

    ids: Sequence[str]
    dense: NDArray[np.float32]
    lexical: SparseRows
    payloads: Sequence[Mapping[str, Any]]
    sparse: SparseRows | None = None
    colbert_offsets: NDArray[np.int64] | None = None
    colbert: NDArray[np.float32] | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def tokens(self, number: int) -> NDArray[np.float32] | None:
        """One point's ColBERT vectors, of shape (tokens, dimensions)."""
        if self.colbert is None or self.colbert_offsets is None:
            return None
        return self.colbert[self.colbert_offsets[number] : self.colbert_offsets[number + 1]]

    def take(self, numbers: NDArray[np.int64]) -> PointBatch:
        """Some of the points. numbers: theirs here, ascending."""
        if len(numbers) == len(self):
            return self
        colbert_offsets, colbert = None, None
        if self.colbert is not None and self.colbert_offsets is not None:
            colbert_offsets, colbert_rows = _rows_of(self.colbert_offsets, numbers)
            colbert = self.colbert[colbert_rows]
        return PointBatch(
            [self.ids[number] for number in numbers],
            self.dense[numbers],
            self.lexical.take(numbers),
            [self.payloads[number] for number in numbers],
            None if self.sparse is None else self.sparse.take(numbers),
            colbert_offsets,
            colbert,
        )

    def split(self, most: int = BYTES) -> Iterator[PointBatch]:
        """The points in parts of about `most` bytes, one point at least in each."""
        import numpy as np

        ends = np.cumsum(self._sizes())
        start = 0
        while start < len(self):
            before = ends[start - 1] if start else 0
            end = max(start + 1, int(np.searchsorted(ends, before + most, side="right")))
            yield self._slice(start, end)
            start = end

    def _sizes(self) -> NDArray[np.int64]:
        """Bytes of each point on the wire, about."""
        import numpy as np

        sizes = self.lexical.lengths * 8 + self.dense.shape[1] * 4 + _PAYLOAD_BYTES
        if self.sparse is not None:
            sizes = sizes + self.sparse.lengths * 8
        if self.colbert is not None and self.colbert_offsets is not None:
            sizes = sizes + np.diff(self.colbert_offsets) * self.colbert.shape[1] * 4
        return np.asarray(sizes, np.int64)

    def _slice(self, start: int, end: int) -> PointBatch:
        colbert_offsets, colbert = None, None
        if self.colbert is not None and self.colbert_offsets is not None:
            rows = slice(self.colbert_offsets[start], self.colbert_offsets[end])
            colbert_offsets, colbert = self.colbert_offsets[start : end + 1] - rows.start, self.colbert[rows]
        return PointBatch(
            self.ids[start:end],
            self.dense[start:end],
            self.lexical.slice(start, end),
            self.payloads[start:end],
            None if self.sparse is None else self.sparse.slice(start, end),
            colbert_offsets,
            colbert,
        )


def _rows_of(offsets: NDArray[np.int64], numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Offsets of the chosen points among themselves, and the rows that are theirs."""
    import numpy as np

    lengths = np.diff(offsets)[numbers]
    chosen = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    rows = np.arange(chosen[-1]) + np.repeat(offsets[numbers] - chosen[:-1], lengths)
    return chosen, rows


def check_points(points: PointBatch, layout: Layout) -> None:
    """Raise PermanentFailure, which names a passage, for points that a collection of this layout cannot hold.

    Neither engine refuses all of them: Edge accepts a vector of NaN, which no search finds again, and a sparse vector
    with more ids than weights breaks its log, so that the collection cannot be opened any more.
    """
    if not len(points):
        return
    if points.dense.shape != (len(points), layout.dimensions):
        shape = points.dense.shape
        raise _refused(points, 0, f"a dense vector of shape {shape[1:]} and not ({layout.dimensions},)")
    _refuse_where(points, _not_finite(points.dense), "a dense vector with NaN, infinity or a number that is too large")
    _check_sparse(points, points.lexical, "lexical")
    if (points.sparse is not None) != layout.sparse:
        raise _refused(points, 0, f"{'no ' * layout.sparse}sparse vector, against the collection's layout")
    if points.sparse is not None:
        _check_sparse(points, points.sparse, "sparse")
    _check_tokens(points, layout)


def _check_sparse(points: PointBatch, rows: SparseRows, kind: str) -> None:
    """Weights must be finite, and ids ascend within a point."""
    import numpy as np

    _check_offsets(points, rows.offsets, kind, len(rows.ids), len(rows.weights))
    owner = np.repeat(np.arange(len(points)), rows.lengths)
    weightless = _marked(len(points), owner[~np.isfinite(rows.weights)])
    _refuse_where(points, weightless, f"a {kind} vector with a weight that is NaN or infinite")
    not_ascending = (rows.ids[1:] <= rows.ids[:-1]) & (owner[1:] == owner[:-1])
    _refuse_where(points, _marked(len(points), owner[1:][not_ascending]), f"a {kind} vector whose ids do not ascend")


def _check_tokens(points: PointBatch, layout: Layout) -> None:
    """ColBERT vectors are there for every point, or for none, as the layout says."""
    import numpy as np

    if points.colbert is None or points.colbert_offsets is None:
        if layout.colbert:
            raise _refused(points, 0, "no ColBERT vectors, and the collection requires them")
        return
    if not layout.colbert:
        raise _refused(points, 0, "ColBERT vectors, and the collection has none")
    if points.colbert.shape[1:] != (layout.dimensions,):
        shape = points.colbert.shape[1:]
        raise _refused(points, 0, f"ColBERT vectors of shape {shape} and not ({layout.dimensions},)")
    _check_offsets(points, points.colbert_offsets, "ColBERT", len(points.colbert))
    lengths = np.diff(points.colbert_offsets)
    _refuse_where(points, lengths == 0, "no ColBERT vectors, and the collection requires them")
    owner = np.repeat(np.arange(len(points)), lengths)
    wrong = _marked(len(points), owner[_not_finite(points.colbert)])
    _refuse_where(points, wrong, "a ColBERT vector with NaN, infinity or a number that is too large")


def _check_offsets(points: PointBatch, offsets: NDArray[np.int64], kind: str, *rows: int) -> None:
    import numpy as np

    lengths = np.diff(offsets)
    if len(lengths) == len(points):
        _refuse_where(points, lengths < 0, f"{kind} rows with an end before their start")
        if offsets[0] == 0 and all(offsets[-1] == number for number in rows):
            return
    raise _refused(points, 0, f"{kind} columns of different lengths, or another passage of its batch has")


def _not_finite(rows: NDArray[np.float32]) -> NDArray[np.bool_]:
    """For each row, whether its norm is NaN or infinite, also because the squares of its numbers are too large."""
    import numpy as np

    with np.errstate(over="ignore", invalid="ignore"):
        squares: NDArray[np.float32] = np.einsum("ij,ij->i", rows, rows)
    wrong: NDArray[np.bool_] = ~np.isfinite(squares)
    return wrong


def _marked(count: int, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
    import numpy as np

    marked = np.zeros(count, np.bool_)
    marked[numbers] = True
    return marked


def _refuse_where(points: PointBatch, wrong: NDArray[np.bool_], what: str) -> None:
    import numpy as np

    if wrong.any():
        raise _refused(points, int(np.flatnonzero(wrong)[0]), what)


def _refused(points: PointBatch, number: int, what: str) -> PermanentFailure:
    month = points.payloads[number].get("month", "all") if number < len(points.payloads) else "all"
    return PermanentFailure(
        f"passage {points.ids[number]} has {what}: run citeloom run --months {month} --select embeddings --force"
    )
