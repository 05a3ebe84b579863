"""Points to load, as columns of many passages, and the checks that they pass before an engine
receives them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipeline.errors import PermanentFailure

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipeline.embedding.embedder import SparseRows

# Size of one request: 4 MB are 700 points of BGE-M3; a server accepts 32 MB.
BYTES = 4 << 20
# Id and payload of a point, a dozen fields; and each name by which a paper's author is found.
_PAYLOAD_BYTES, _NAME_BYTES = 700, 30


@dataclass(frozen=True, slots=True, eq=False)
class PointBatch:
    """Points by columns; point number n has the rows offsets[n]:offsets[n + 1] of what is ragged.

    ids: passage ids. dense: float32 of shape (points, dimensions). lexical: of stemmed words.
    payloads: what a search restricts or shows; `digest` in it is of the whole point. sparse: of the
    model's lexical head, None where the collection has none.
    """

    ids: Sequence[str]
    dense: NDArray[np.float32]
    lexical: SparseRows
    payloads: Sequence[Mapping[str, Any]]
    sparse: SparseRows | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, numbers: NDArray[np.int64]) -> PointBatch:
        """Some of the points. numbers: theirs here, ascending."""
        if len(numbers) == len(self):
            return self
        return PointBatch(
            [self.ids[number] for number in numbers],
            self.dense[numbers],
            self.lexical.take(numbers),
            [self.payloads[number] for number in numbers],
            None if self.sparse is None else self.sparse.take(numbers),
        )

    def split(self, most: int = BYTES) -> Iterator[PointBatch]:
        """The points in parts of about `most` bytes, one point at least in each."""
        import numpy as np

        ends = np.cumsum(self._sizes())
        start = 0
        while start < len(self):
            before = ends[start - 1] if start else 0
            end = max(start + 1, int(np.searchsorted(ends, before + most, side="right")))
            yield self.take(np.arange(start, end))
            start = end

    def _sizes(self) -> NDArray[np.int64]:
        """Approximate size of each point in a request, in bytes."""
        import numpy as np

        names = np.array([len(payload.get("authors", ())) for payload in self.payloads], np.int64)
        sizes = self.lexical.lengths * 8 + self.dense.shape[1] * 4
        sizes = sizes + _PAYLOAD_BYTES + names * _NAME_BYTES
        if self.sparse is not None:
            sizes = sizes + self.sparse.lengths * 8
        return np.asarray(sizes, np.int64)


def check_points(points: PointBatch) -> None:
    """Raise PermanentFailure, which names a passage, for vectors that would damage a collection.

    In half precision large numbers become infinite or NaN. Edge accepts a vector of NaN, which no
    search finds again, and a sparse vector with more ids than weights breaks its log: the
    collection cannot be opened any more.
    """
    import numpy as np

    numbers = np.arange(len(points))
    vectors = [("dense", numbers, points.dense)]
    for kind, terms in (("lexical", points.lexical), ("sparse", points.sparse)):
        if terms is not None:
            if len(terms.ids) != len(terms.weights):
                raise _refused(
                    points,
                    0,
                    f"a {kind} vector without a weight for each id, or another of its batch has",
                )
            vectors.append((kind, np.repeat(numbers, terms.lengths), terms.weights[:, None]))
    for kind, owners, rows in vectors:
        wrong = owners[_not_finite(rows)]
        if len(wrong):
            raise _refused(
                points,
                int(wrong[0]),
                f"a {kind} vector with NaN, infinity or a number that is too large",
            )


def _not_finite(rows: NDArray[np.float32]) -> NDArray[np.bool_]:
    """For each row, whether its norm is NaN or infinite, also because the squares of its numbers
    are too large.
    """
    import numpy as np

    with np.errstate(over="ignore", invalid="ignore"):
        squares: NDArray[np.float32] = np.einsum("ij,ij->i", rows, rows)
    wrong: NDArray[np.bool_] = ~np.isfinite(squares)
    return wrong


def _refused(points: PointBatch, number: int, what: str) -> PermanentFailure:
    month = points.payloads[number].get("month", "all")
    return PermanentFailure(
        f"passage {points.ids[number]} has {what}: run citeloom run --months {month} --select"
        " embeddings --force"
    )
