"""A pack as a padded batch, which other libraries' networks read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from pipeline.embedding.encoder import Tokens


@dataclass(frozen=True, slots=True, eq=False)
class PaddedBatch:
    """ids and mask: int64 of shape (texts, longest). places: int64 of shape (count,), each token's
    place in them, row after row.
    """

    ids: Tensor
    mask: Tensor
    places: Tensor


def pad(tokens: Tokens, padding: int) -> PaddedBatch:
    """The texts of a pack, a row each, with the id `padding` up to the longest."""
    import torch

    places = padded_places(tokens)
    shape = (len(tokens.starts) - 1, tokens.longest)
    ids = torch.full((shape[0] * shape[1],), padding, device=places.device)
    mask = torch.zeros_like(ids)
    ids[places] = tokens.ids[: tokens.count].long()
    mask[places] = 1
    return PaddedBatch(ids.view(shape), mask.view(shape), places)


def padded_places(tokens: Tokens) -> Tensor:
    """`PaddedBatch.places`."""
    import torch

    starts = tokens.starts.long()
    lengths = starts[1:] - starts[:-1]
    numbers = torch.arange(len(lengths), device=starts.device)
    shift = numbers * tokens.longest - starts[:-1]
    return torch.arange(tokens.count, device=starts.device) + shift.repeat_interleave(
        lengths, output_size=tokens.count
    )
