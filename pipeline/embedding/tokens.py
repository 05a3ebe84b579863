"""Texts to token ids, by the library tokenizers alone: ids end to end in one array, and nothing else.

Never here: what ids mean to a model (`packing`), weights of terms (`terms`). A model's own wrapper builds masks, type
ids and a Python object per text that nobody here reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class TokenRows:
    """Token ids of consecutive texts, end to end: text n has ids[offsets[n]:offsets[n + 1]].

    ids: int32 of shape (tokens,). offsets: int64 of shape (texts + 1,).
    """

    ids: NDArray[np.int32]
    offsets: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of every text, of shape (texts,)."""
        return self.offsets[1:] - self.offsets[:-1]


def plain(tokenizer: Any) -> Any:
    """A tokenizer of the library tokenizers, so set that it neither cuts nor pads."""
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def tokenize(tokenizer: Any, texts: Sequence[str]) -> TokenRows:
    """Token ids of the texts, special tokens included; lets other threads run meanwhile."""
    import numpy as np

    # The fast call leaves out the place of every token in its text.
    rows = [encoding.ids for encoding in tokenizer.encode_batch_fast(list(texts))]
    offsets = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum([len(row) for row in rows], out=offsets[1:])
    ids = np.fromiter(chain.from_iterable(rows), dtype=np.int32, count=int(offsets[-1]))
    return TokenRows(ids, offsets)


def cut(rows: TokenRows, most: int) -> tuple[TokenRows, NDArray[np.bool_]]:
    """The rows, each of `most` tokens at most, and which were longer.

    A text is cut before its last token, so that the closing special token stays.
    """
    import numpy as np

    truncated = rows.lengths > most
    if not truncated.any():
        return rows, truncated
    kept = np.minimum(rows.lengths, most)
    ids = rows.ids[spans(rows.offsets[:-1], kept)]
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(kept)])
    ids[offsets[1:] - 1] = rows.ids[rows.offsets[1:] - 1]
    return TokenRows(ids, offsets), truncated


def spans(starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers starts[n], starts[n] + 1, … of every span in turn, of shape (sum of lengths,)."""
    import numpy as np

    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(int(lengths.sum()), dtype=np.int64)


def text_windows(texts: Iterable[str], most_texts: int, most_chars: int) -> Iterator[list[str]]:
    """Consecutive texts, until they are `most_texts` or have `most_chars` characters."""
    window: list[str] = []
    chars = 0
    for text in texts:
        window.append(text)
        chars += len(text)
        if len(window) == most_texts or chars >= most_chars:
            yield window
            window, chars = [], 0
    if window:
        yield window
