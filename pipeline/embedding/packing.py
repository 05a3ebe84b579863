"""Windows of a stream and the packs they are cut into: sequences end to end without padding, by a budget of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from pipeline.embedding.terms import Terms
from pipeline.embedding.tokens import TokenRows, spans

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """Consecutive texts of a stream, as a model reads them.

    rows: their tokens, none longer than the model reads. positions: int32 of shape (tokens,), the row of the
    position embeddings for every token. terms: what the sparse vectors weigh; None where the model makes none.
    truncated: bool of shape (texts,).
    """

    rows: TokenRows
    positions: NDArray[np.int32]
    terms: Terms | None
    truncated: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Pack:
    """Some texts of a window, end to end, longest first.

    places: int64 of shape (texts,), the texts' places in the window. ids and positions: int32 of shape (tokens,).
    starts: int32 of shape (texts + 1,), where each text's tokens begin. slots: int64 of shape (tokens,), for every
    token the place of its term among the pack's, or `terms` (one beyond the last) for a token that has none.
    """

    window: Window
    places: NDArray[np.int64]
    ids: NDArray[np.int32]
    positions: NDArray[np.int32]
    starts: NDArray[np.int32]
    slots: NDArray[np.int64]
    terms: int

    @property
    def tokens(self) -> int:
        """Tokens of the pack."""
        return len(self.ids)

    @property
    def longest(self) -> int:
        """Tokens of its longest text, which is the first."""
        return int(self.starts[1])

    def halves(self) -> list[Pack]:
        """The pack's texts in two packs. Raises ValueError for a pack of one text, which cannot be divided."""
        if len(self.places) < 2:
            raise ValueError("a pack of one text cannot be divided")
        middle = len(self.places) // 2
        return [pack_of(self.window, places) for places in (self.places[:middle], self.places[middle:])]


def grouped(lengths: NDArray[np.int64], budget: int) -> list[NDArray[np.int64]]:
    """The places of texts in groups of like length, longest first, each of `budget` tokens at most.

    A text of more tokens goes alone. Ties keep the texts' order, so that equal windows make equal groups.
    """
    import numpy as np

    order = np.argsort(-lengths, kind="stable").astype(np.int64)
    breaks, tokens = [], 0
    for number, place in enumerate(order):
        tokens += int(lengths[place])
        if tokens > budget and number:
            breaks.append(number)
            tokens = int(lengths[place])
    return [group for group in np.split(order, breaks) if len(group)]


def packs(window: Window, budget: int) -> list[Pack]:
    """All texts of a window in packs of `budget` tokens at most."""
    return [pack_of(window, places) for places in grouped(window.rows.lengths, budget)]


def pack_of(window: Window, places: NDArray[np.int64]) -> Pack:
    """The texts at `places` of a window as one pack. `places` must have the longest text first."""
    import numpy as np

    lengths = window.rows.lengths[places]
    tokens = spans(window.rows.offsets[places], lengths)
    starts = np.zeros(len(places) + 1, dtype=np.int32)
    np.cumsum(lengths, out=starts[1:])
    slots, terms = _slots(window, places)
    return Pack(window, places, window.rows.ids[tokens], window.positions[tokens], starts, slots, terms)


def _slots(window: Window, places: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    """For every token of a pack, its term's place among the pack's terms, and how many terms there are."""
    import numpy as np

    if window.terms is None:
        return np.empty(0, dtype=np.int64), 0
    lengths, terms = window.rows.lengths[places], window.terms.lengths[places]
    slots = window.terms.slots[spans(window.rows.offsets[places], lengths)]
    shift = (np.cumsum(terms) - terms) - window.terms.offsets[places]
    count = int(terms.sum())
    return np.where(slots < 0, count, slots + np.repeat(shift, lengths)), count


def runs(starts: NDArray[np.int32]) -> list[tuple[int, int, int]]:
    """Neighbours of equal length in a pack, as (first token, texts, tokens of each)."""
    found: list[tuple[int, int, int]] = []
    edges: Sequence[int] = starts.tolist()
    for first, last in pairwise(edges):
        if found and found[-1][2] == last - first:
            found[-1] = (found[-1][0], found[-1][1] + 1, last - first)
        else:
            found.append((first, 1, last - first))
    return found


def positions(rows: TokenRows, padding: int | None) -> NDArray[np.int32]:
    """The row of the position embeddings for every token, of shape (tokens,).

    BERT counts from 0 (`padding` None). XLM-RoBERTa counts from its padding id + 1, and a padding token that a text
    spells out is not counted and has the padding's row.
    """
    import numpy as np

    if padding is None:
        return spans(np.zeros(len(rows), np.int64), rows.lengths).astype(np.int32)
    counted = rows.ids != padding
    total = np.concatenate([np.zeros(1, np.int64), np.cumsum(counted)])
    within = total[1:] - np.repeat(total[rows.offsets[:-1]], rows.lengths)
    found: NDArray[np.int32] = (within * counted + padding).astype(np.int32)
    return found
