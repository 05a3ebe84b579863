"""Packs as padded batches, for the networks of other libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from pipeline.embedding.encoder import Tokens


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
