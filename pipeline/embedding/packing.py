"""From texts to packs: token ids, windows of texts, and the packs into which windows are divided.

A pack holds sequences end to end without padding, up to a budget of tokens. Tokenizers of the
library tokenizers are called directly: a model's own wrapper also builds masks, type ids and a
Python object for each text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from pipeline.embedding.encoder import Tokens
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
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
    offsets = offsets_of(np.array([len(row) for row in rows], np.int64))
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
    lengths = np.minimum(rows.lengths, most)
    ids = rows.ids[spans(rows.offsets[:-1], lengths)]
    offsets = offsets_of(lengths)
    ids[offsets[1:] - 1] = rows.ids[rows.offsets[1:] - 1]
    return TokenRows(ids, offsets), truncated


def offsets_of(lengths: NDArray[Any]) -> NDArray[np.int64]:
    """Offsets of consecutive runs by their lengths, from 0: of shape (runs + 1,)."""
    import numpy as np

    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


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


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """Distinct token ids of texts: text n has ids[offsets[n]:offsets[n + 1]], ascending.

    offsets: int64 of shape (texts + 1,). ids: uint32 of shape (terms,). slots: int64 of shape
    (tokens,), the place in `ids` of every token, or -1 where its id is left out.
    """

    offsets: NDArray[np.int64]
    ids: NDArray[np.uint32]
    slots: NDArray[np.int64]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Terms of every text, of shape (texts,)."""
        return self.offsets[1:] - self.offsets[:-1]


def distinct_terms(rows: TokenRows, left_out: Collection[int]) -> Terms:
    """The terms of texts, without the ids in `left_out`."""
    import numpy as np

    # One sort finds the terms of all texts: a key is the text's number above the token's id.
    texts = np.repeat(np.arange(len(rows), dtype=np.int64), rows.lengths)
    keys, places = np.unique((texts << 32) | rows.ids, return_inverse=True)
    ids = (keys & 0xFFFFFFFF).astype(np.uint32)
    is_term = ~np.isin(ids, np.fromiter(left_out, dtype=np.uint32, count=len(left_out)))
    slots = np.where(is_term, np.cumsum(is_term) - 1, -1)[places]
    offsets = np.searchsorted(keys[is_term] >> 32, np.arange(len(rows) + 1, dtype=np.int64))
    return Terms(offsets.astype(np.int64), ids[is_term], slots)


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """Consecutive texts of a stream, as a model reads them.

    rows: their tokens, none longer than the model reads. positions: int32 of shape (tokens,), the
    row of the position embeddings for every token. terms: what the sparse vectors weigh; None where
    the model makes none. truncated: bool of shape (texts,).
    """

    rows: TokenRows
    positions: NDArray[np.int32]
    terms: Terms | None
    truncated: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Pack:
    """Some texts of a window, end to end, longest first.

    places: int64 of shape (texts,), the texts' places in the window. ids and positions: int32 of
    shape (tokens,). starts: int32 of shape (texts + 1,), where each text's tokens begin. slots:
    int64 of shape (tokens,), for every token the place of its term among the pack's, or `terms`
    (one beyond the last) for a token that has none.
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
        """The pack's texts in two packs. Raises ValueError for a pack of one text, which cannot be
        divided.
        """
        if len(self.places) < 2:
            raise ValueError("a pack of one text cannot be divided")
        middle = len(self.places) // 2
        return [
            pack_of(self.window, places) for places in (self.places[:middle], self.places[middle:])
        ]


def group_by_length(lengths: NDArray[np.int64], budget: int) -> list[NDArray[np.int64]]:
    """The places of texts in groups of like length, longest first, each of `budget` tokens at most.

    A text of more tokens goes alone. Ties keep the texts' order, so that equal windows make equal
    groups.
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
    return [pack_of(window, places) for places in group_by_length(window.rows.lengths, budget)]


def pack_of(window: Window, places: NDArray[np.int64]) -> Pack:
    """The texts at `places` of a window as one pack. `places` must have the longest text first."""
    import numpy as np

    lengths = window.rows.lengths[places]
    tokens = spans(window.rows.offsets[places], lengths)
    starts = np.zeros(len(places) + 1, dtype=np.int32)
    np.cumsum(lengths, out=starts[1:])
    slots, terms = _slots(window, places)
    return Pack(
        window, places, window.rows.ids[tokens], window.positions[tokens], starts, slots, terms
    )


def _slots(window: Window, places: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    """Each token's term among the pack's terms, and the number of terms."""
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
    groups: list[tuple[int, int, int]] = []
    edges: Sequence[int] = starts.tolist()
    for first, last in pairwise(edges):
        if groups and groups[-1][2] == last - first:
            groups[-1] = (groups[-1][0], groups[-1][1] + 1, last - first)
        else:
            groups.append((first, 1, last - first))
    return groups


def positions(rows: TokenRows, padding: int | None) -> NDArray[np.int32]:
    """The row of the position embeddings for every token, of shape (tokens,).

    BERT counts from 0 (`padding` None). XLM-RoBERTa counts from its padding id + 1, and a padding
    token that a text spells out is not counted and has the padding's row.
    """
    import numpy as np

    if padding is None:
        return spans(np.zeros(len(rows), np.int64), rows.lengths).astype(np.int32)
    counted = rows.ids != padding
    total = offsets_of(counted)
    within = total[1:] - np.repeat(total[rows.offsets[:-1]], rows.lengths)
    numbers: NDArray[np.int32] = (within * counted + padding).astype(np.int32)
    return numbers


def padded_features(tokens: Tokens, padding: int) -> dict[str, Tensor]:
    """A pack's texts as input of a network of transformers.

    padding: the id that fills a row. Returns input_ids and attention_mask, int64 of shape (texts,
    tokens of the longest).
    """
    import torch

    places = padded_places(tokens)
    shape = (len(tokens.starts) - 1, tokens.longest)
    ids = torch.full((shape[0] * shape[1],), padding, device=places.device)
    mask = torch.zeros_like(ids)
    ids[places] = tokens.ids[: tokens.count].long()
    mask[places] = 1
    return {"input_ids": ids.view(shape), "attention_mask": mask.view(shape)}


def padded_places(tokens: Tokens) -> Tensor:
    """Each token's place in the flattened padded batch; int64 of shape (count,)."""
    import torch

    starts = tokens.starts.long()
    lengths = starts[1:] - starts[:-1]
    numbers = torch.arange(len(lengths), device=starts.device)
    shift = numbers * tokens.longest - starts[:-1]
    return torch.arange(tokens.count, device=starts.device) + shift.repeat_interleave(
        lengths, output_size=tokens.count
    )
