"""Sparse vectors: one, or those of many texts in columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class SparseVector:
    """ids: uint32, ascending, of shape (terms,). weights: float32 of the same shape."""

    ids: NDArray[np.uint32]
    weights: NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class SparseRows:
    """Sparse vectors of consecutive texts: text n has ids[offsets[n]:offsets[n + 1]], and weights alike.

    offsets: int64 of shape (texts + 1,). ids: uint32, ascending within a text, and weights: float32, of shape (terms,).
    """

    offsets: NDArray[np.int64]
    ids: NDArray[np.uint32]
    weights: NDArray[np.float32]

    @classmethod
    def of(cls, rows: Sequence[Mapping[int, float]]) -> SparseRows:
        """The vectors of mappings from id to weight."""
        import numpy as np

        offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        ids = np.fromiter((number for row in rows for number in sorted(row)), np.uint32, int(offsets[-1]))
        weights = np.fromiter((row[number] for row in rows for number in sorted(row)), np.float32, int(offsets[-1]))
        return cls(offsets, ids, weights)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @classmethod
    def nothing(cls, texts: int) -> SparseRows:
        """As many vectors without a term."""
        return cls.of([{}] * texts)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Terms of every text, of shape (texts,)."""
        return self.offsets[1:] - self.offsets[:-1]

    def slice(self, start: int, end: int) -> SparseRows:
        """The vectors of texts start to end - 1."""
        terms = slice(self.offsets[start], self.offsets[end])
        return SparseRows(self.offsets[start : end + 1] - terms.start, self.ids[terms], self.weights[terms])

    def take(self, numbers: NDArray[np.int64]) -> SparseRows:
        """The vectors of some texts, by their numbers."""
        import numpy as np

        lengths = self.lengths[numbers]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        places = np.arange(offsets[-1]) + np.repeat(self.offsets[numbers] - offsets[:-1], lengths)
        return SparseRows(offsets, self.ids[places], self.weights[places])

    def row(self, number: int) -> SparseVector:
        """One text's vector."""
        terms = slice(self.offsets[number], self.offsets[number + 1])
        return SparseVector(self.ids[terms], self.weights[terms])
