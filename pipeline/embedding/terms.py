"""The distinct tokens of a text, which sparse vectors weigh."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.embedding.tokens import TokenRows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """The distinct token ids of consecutive texts: text n has ids[offsets[n]:offsets[n + 1]], ascending.

    offsets: int64 of shape (texts + 1,). ids: uint32 and counts: int64, of shape (terms,). slots: int64 of shape
    (tokens,), the place in `ids` of every token, or -1 where its id is left out.
    """

    offsets: NDArray[np.int64]
    ids: NDArray[np.uint32]
    counts: NDArray[np.int64]
    slots: NDArray[np.int64]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Terms of every text, of shape (texts,)."""
        return self.offsets[1:] - self.offsets[:-1]


def distinct(rows: TokenRows, left_out: Collection[int]) -> Terms:
    """The terms of texts, without the ids in `left_out`."""
    import numpy as np

    # One sort finds the terms of all texts: a key is the text's number above the token's id.
    texts = np.repeat(np.arange(len(rows), dtype=np.int64), rows.lengths)
    keys, places, counts = np.unique((texts << 32) | rows.ids, return_inverse=True, return_counts=True)
    ids = (keys & 0xFFFFFFFF).astype(np.uint32)
    kept = ~np.isin(ids, np.fromiter(left_out, dtype=np.uint32, count=len(left_out)))
    slots = np.where(kept, np.cumsum(kept) - 1, -1)[places]
    offsets = np.searchsorted(keys[kept] >> 32, np.arange(len(rows) + 1, dtype=np.int64))
    return Terms(offsets.astype(np.int64), ids[kept], counts[kept].astype(np.int64), slots)
