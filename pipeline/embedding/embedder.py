"""The protocol of an embedding model, what it returns, and what engines share: batches, devices, padding.

Not here: any model, and choosing one (`choice`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Vectors:
    """One text's vectors.

    dense: float32 of shape (dimensions,), unit length. sparse_ids: uint32, ascending, of shape (k,), and
    sparse_weights: float32 of the same shape, greater than 0. colbert: float32 of shape (tokens, dimensions), rows of
    unit length; None unless asked for. truncated: whether the dense vector saw only the text's beginning.
    """

    dense: NDArray[np.float32]
    sparse_ids: NDArray[np.uint32]
    sparse_weights: NDArray[np.float32]
    colbert: NDArray[np.float32] | None
    truncated: bool


class Embedder(Protocol):
    """A model that turns texts into vectors.

    A text's vectors do not depend on what it is encoded with, as far as the engine says in its own docstring.
    """

    @property
    def name(self) -> str:
        """The model's identity: vectors of two models never compare, so no two share a name."""
        ...

    @property
    def dimensions(self) -> int:
        """Length of the dense vector."""
        ...

    @property
    def max_tokens(self) -> int:
        """Tokens that the model reads, special tokens counted."""
        ...

    @property
    def sparse_idf(self) -> bool:
        """Whether the sparse weights leave inverse document frequency to the index."""
        ...

    def encode(self, texts: Sequence[str]) -> list[Vectors]:
        """Vectors of passages, in the texts' order."""
        ...

    def encode_queries(self, texts: Sequence[str]) -> list[Vectors]:
        """Vectors of questions, in the texts' order."""
        ...


def batches(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Positions of the texts, grouped into batches of like length, longest first.

    A batch padded to its longest text has at most `budget` tokens; with a budget of 0 every text goes alone.
    """
    found: list[list[int]] = []
    for position in sorted(range(len(lengths)), key=lambda place: (-lengths[place], place)):
        if found and (len(found[-1]) + 1) * lengths[found[-1][0]] <= budget:
            found[-1].append(position)
        else:
            found.append([position])
    return found


def pick_device(wanted: str) -> str:
    """The torch device for CITELOOM_EMBEDDER_DEVICE. Raises SettingError where torch cannot use it."""
    import torch

    from pipeline.errors import SettingError

    if wanted == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if wanted.partition(":")[0] not in ("cpu", "cuda"):
        raise SettingError(f"CITELOOM_EMBEDDER_DEVICE: {wanted!r} is none of auto, cpu, cuda, cuda:N")
    try:
        torch.empty(0, device=wanted)
    except (RuntimeError, AssertionError) as error:
        raise SettingError(
            f"CITELOOM_EMBEDDER_DEVICE: torch cannot use {wanted} here ({error}); set it to auto or cpu"
        ) from error
    return wanted


def cut(ids: list[int], most: int) -> list[int]:
    """The ids, cut in the middle of a text so that the closing special token stays."""
    return ids if len(ids) <= most else [*ids[: most - 1], ids[-1]]


def pad(rows: Sequence[Sequence[int]], filler: int) -> tuple[Any, Any]:
    """Token ids and attention mask of a batch as int64 tensors of shape (texts, longest)."""
    import torch

    longest = max(len(row) for row in rows)
    ids = torch.full((len(rows), longest), filler, dtype=torch.long)
    mask = torch.zeros((len(rows), longest), dtype=torch.long)
    for place, row in enumerate(rows):
        ids[place, : len(row)] = torch.as_tensor(row)
        mask[place, : len(row)] = 1
    return ids, mask
