"""What is made of the last hidden states on the device: dense, sparse and ColBERT vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.embedding.encoder import Linear, Tokens, make_linear

if TYPE_CHECKING:
    from torch import Tensor, dtype


@dataclass(frozen=True, slots=True, eq=False)
class Heads:
    """What heads give for a pack, on its device.

    dense: float32 of shape (texts, dimensions). sparse: float32 of shape (terms,); None where the model has no such
    head. colbert: of shape (tokens - texts, dimensions), every token's but each text's first; None unless asked for.
    """

    dense: Tensor
    sparse: Tensor | None
    colbert: Tensor | None


class M3Heads:
    """BGE-M3's three heads (Chen et al. 2024, section 3.2), as FlagEmbedding computes them.

    sparse and colbert: (weight, bias) of the two linear layers; without `colbert` there are no such vectors. The
    weight of a term is the greatest of its tokens', found on the device.
    """

    def __init__(
        self, sparse: tuple[Tensor, Tensor], colbert: tuple[Tensor, Tensor] | None, device: str, precision: dtype
    ) -> None:
        import torch

        self._sparse = (sparse[0][0].to(device, torch.float32), sparse[1].to(device, torch.float32))
        self._colbert: Linear | None = None if colbert is None else make_linear(*colbert, device, precision)

    def __call__(self, hidden: Tensor, tokens: Tokens, slots: Tensor, terms: int, *, half: bool) -> Heads:
        """The vectors of a pack; `slots` and `terms` as in `Pack`; with `half`, ColBERT's are float16."""
        import torch

        dense = _unit(hidden[tokens.starts[:-1].long()])
        weight, bias = self._sparse
        # A product and a sum, since a matrix product with one column gave other bits in another pack.
        weights = torch.relu((hidden.float() * weight).sum(1) + bias)
        colbert = None
        if self._colbert is not None:
            colbert = _unit(self._colbert(hidden[tokens.inner]))
            colbert = colbert.half() if half else colbert
        return Heads(dense, greatest_weights(weights, slots, terms), colbert)


class MeanHead:
    """The mean over all tokens, of unit length: sentence-transformers' pooling and normalising."""

    def __call__(self, hidden: Tensor, tokens: Tokens, slots: Tensor, terms: int, *, half: bool) -> Heads:
        """The dense vectors of a pack."""
        import torch

        means = [
            hidden[first : first + texts * length].view(texts, length, -1).float().mean(1)
            for first, texts, length in tokens.runs
        ]
        return Heads(_unit(torch.cat(means)), None, None)


def greatest_weights(weights: Tensor, slots: Tensor, terms: int) -> Tensor:
    """The greatest weight of each term's tokens, float32 of shape (terms,).

    weights: float32 of shape (tokens,), none below 0. slots and terms: as in `Pack`.
    """
    import torch

    return torch.zeros(terms + 1, device=weights.device).scatter_reduce_(0, slots, weights, "amax")[:terms]


def _unit(rows: Tensor) -> Tensor:
    import torch

    return torch.nn.functional.normalize(rows.float(), dim=1)
