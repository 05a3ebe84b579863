"""A model's numbers from its files: safetensors, or a torch file read for its weights alone.

Never here: code of a model's folder. A file that holds any is refused, and no remote code is run.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

WEIGHT_FILES = ("model.safetensors", "pytorch_model.bin")
_FIRST = "embeddings.word_embeddings.weight"


class UnreadableWeights(Exception):
    """A file of weights is broken, holds code, or lacks a part; the message names the file."""


def read_weights(folder: Path) -> dict[str, Tensor]:
    """The encoder's weights by their names in transformers, without a prefix such as `roberta.`.

    Raises UnreadableWeights.
    """
    file = next(folder / name for name in WEIGHT_FILES if (folder / name).is_file())
    found = read_file(file)
    prefix = next((name.removesuffix(_FIRST) for name in found if name.endswith(_FIRST)), None)
    if prefix is None:
        raise UnreadableWeights(f"{file} holds no {_FIRST}")
    return {name.removeprefix(prefix): tensor for name, tensor in found.items() if name.startswith(prefix)}


def read_file(file: Path) -> dict[str, Tensor]:
    """The tensors of a .safetensors, .bin or .pt file on the CPU. Raises UnreadableWeights."""
    try:
        found: dict[str, Any] = _read(file)
    except Exception as error:  # safetensors', pickle's, zipfile's and torch's errors share no other base
        reason = " ".join(str(error).split())[:200]
        raise UnreadableWeights(f"{file} cannot be read for its weights alone ({reason})") from error
    return found


def _read(file: Path) -> Any:
    if file.suffix == ".safetensors":
        from safetensors.torch import load_file

        return load_file(file)
    import torch

    # weights_only refuses every pickled object that is no plain tensor, before it is built.
    return torch.load(file, map_location="cpu", weights_only=True)
