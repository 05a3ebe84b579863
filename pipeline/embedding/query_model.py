"""The BERT encoder with a mean over its tokens (Devlin et al. 2019) by numpy, for texts as short as a query.

A search from the shell has one text of some twenty tokens: numpy encodes it in less time than torch needs to be
imported. The same computation as `encoder.Encoder` with `heads.MeanHead`, in float32; a test holds both together.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.embedding.device import Landed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipeline.embedding.encoder import Shape
    from pipeline.embedding.packing import Pack

    Rows = NDArray[np.float32]


class QueryModel:
    """A model of the engine that takes packs of one text.

    file: safetensors with the names of a BERT in transformers. Raises KeyError where a weight is absent.
    """

    def __init__(self, file: Path, shape: Shape) -> None:
        import numpy as np
        from safetensors.numpy import load_file
        from threadpoolctl import ThreadpoolController

        # BLAS multiplies twenty rows with a matrix that lies row by row up to twice as fast as with one that is turned.
        self._weights = {
            name: np.ascontiguousarray(weight.T) if name.startswith("encoder.") and weight.ndim > 1 else weight
            for name, weight in load_file(file).items()
        }
        self._shape = shape
        for number in range(shape.layers):
            self._join_attention(f"encoder.layer.{number}.attention.self")
        self._threads = ThreadpoolController()

    def launch(self, pack: Pack, *, half: bool) -> Callable[[], Landed]:
        """Encode the pack's only text at once."""
        import numpy as np

        # Matrices of twenty rows gain nothing from a second thread, and BLAS's threads spin while they wait: that took
        # two to four times the processor time.
        with self._threads.limit(limits=1, user_api="blas"):
            mean = self._encode(pack.ids, pack.positions).mean(axis=0, keepdims=True)
        dense = mean / np.linalg.norm(mean)
        return lambda: Landed(dense, None, None)

    def release(self) -> None:
        """Hold no memory for later."""

    def _encode(self, ids: NDArray[np.int32], positions: NDArray[np.int32]) -> Rows:
        """The last hidden states, of shape (tokens, hidden)."""
        weights = self._weights
        hidden = weights["embeddings.word_embeddings.weight"][ids]
        hidden = hidden + weights["embeddings.position_embeddings.weight"][positions]
        # Every token is of type 0.
        hidden = self._norm("embeddings.LayerNorm", hidden + weights["embeddings.token_type_embeddings.weight"][0])
        for number in range(self._shape.layers):
            layer = f"encoder.layer.{number}"
            mixed = self._linear(f"{layer}.attention.output.dense", self._attend(f"{layer}.attention.self", hidden))
            hidden = self._norm(f"{layer}.attention.output.LayerNorm", hidden + mixed)
            inner = gelu(self._linear(f"{layer}.intermediate.dense", hidden))
            hidden = self._norm(f"{layer}.output.LayerNorm", hidden + self._linear(f"{layer}.output.dense", inner))
        return hidden

    def _join_attention(self, name: str) -> None:
        """Put the weights of query, key and value side by side: one product of three times the width takes less."""
        import numpy as np

        for kind in ("weight", "bias"):
            parts = [self._weights.pop(f"{name}.{part}.{kind}") for part in ("query", "key", "value")]
            self._weights[f"{name}.{kind}"] = np.concatenate(parts, axis=-1)

    def _attend(self, name: str, hidden: Rows) -> Rows:
        import numpy as np

        rows = self._linear(name, hidden)
        query, key, value = rows.reshape(len(rows), 3, self._shape.heads, -1).transpose(1, 2, 0, 3)
        scores = query @ key.transpose(0, 2, 1) / np.float32(np.sqrt(query.shape[-1]))
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        mixed: Rows = (shares @ value).transpose(1, 0, 2).reshape(len(hidden), -1)
        return mixed

    def _linear(self, name: str, rows: Rows) -> Rows:
        product: Rows = rows @ self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]
        return product

    def _norm(self, name: str, rows: Rows) -> Rows:
        import numpy as np

        centred = rows - rows.mean(axis=-1, keepdims=True)
        deviation = np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + np.float32(self._shape.epsilon))
        normed: Rows = centred / deviation * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]
        return normed


def gelu(rows: Rows) -> Rows:
    """x·Φ(x) with Φ by Abramowitz and Stegun 1964, formula 7.1.26, which is off by 1e-7 at most: numpy has no erf."""
    import numpy as np

    scaled = np.abs(rows) * np.float32(np.sqrt(0.5))
    t = 1 / (1 + np.float32(0.3275911) * scaled)
    polynomial = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    tail = polynomial * np.exp(-scaled * scaled) / 2
    activated: Rows = rows * np.where(rows < 0, tail, 1 - tail)
    return activated
