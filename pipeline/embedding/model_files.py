"""A model's folder, from a setting or the Hugging Face hub, and the weights in it.

Weights are read from safetensors or from a torch file. A torch file that holds code is refused; no
remote code is run.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.errors import SettingError
from pipeline.text import one_line

if TYPE_CHECKING:
    from torch import Tensor

# Exports of the same weights, which nobody here reads: of BGE-M3, the ONNX one is 2.3 GB.
_UNUSED = ["onnx/*", "openvino/*", "imgs/*", "*.onnx", "*.onnx_data"]
WEIGHT_FILES = ("model.safetensors", "pytorch_model.bin")
_FIRST = "embeddings.word_embeddings.weight"


def is_hub_name(path: str) -> bool:
    """Whether a path may be a name of the hub, such as BAAI/bge-m3 or BAAI/bge-m3@revision."""
    return path.count("/") == 1 and not path.startswith((".", "/", "~")) and not path.endswith("/")


def find_folder(path: str, setting: str, otherwise: str) -> Path:
    """The folder `path`, or the model of this name from the hub's cache or the hub.

    setting: that named the path; otherwise: what else to do, for the message. Raises SettingError
    where there is neither.
    """
    folder = Path(path).expanduser()
    if folder.is_dir():
        return folder
    if not is_hub_name(path):
        raise SettingError(
            f"{setting}: there is no folder {path}; give one, or a name of the hub, or {otherwise}"
        )
    return _download(path, setting, otherwise)


def _download(name: str, setting: str, otherwise: str) -> Path:
    import httpx2
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    model, _, revision = name.partition("@")
    find = partial(snapshot_download, model, revision=revision or None, ignore_patterns=_UNUSED)
    with suppress(LocalEntryNotFoundError):
        return Path(find(local_files_only=True))
    try:
        return Path(find())
    except (OSError, ValueError, httpx2.HTTPError) as error:
        # A timeout may have no message.
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise SettingError(
            f"{setting}: {name} is neither a folder nor to be had from the Hugging Face hub"
            f" ({reason}): set it to the folder of the model's files, or {otherwise}"
        ) from error


class UnreadableWeights(Exception):
    """A file of weights is broken, holds code, or lacks a part; the message names the file."""


def read_weights(folder: Path) -> dict[str, Tensor]:
    """The encoder's weights by their names in transformers, without a prefix such as `roberta.`.

    Raises UnreadableWeights.
    """
    file = next(folder / name for name in WEIGHT_FILES if (folder / name).is_file())
    tensors = read_file(file)
    prefix = next((name.removesuffix(_FIRST) for name in tensors if name.endswith(_FIRST)), None)
    if prefix is None:
        raise UnreadableWeights(f"{file} holds no {_FIRST}")
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }


def read_file(file: Path) -> dict[str, Tensor]:
    """The tensors of a .safetensors, .bin or .pt file on the CPU. Raises UnreadableWeights."""
    try:
        tensors: dict[str, Any] = _read(file)
    # Errors of safetensors, pickle, zipfile and torch share no other base.
    except Exception as error:
        reason = one_line(str(error))[:200]
        raise UnreadableWeights(
            f"{file} cannot be read for its weights alone ({reason})"
        ) from error
    return tensors


def _read(file: Path) -> Any:
    if file.suffix == ".safetensors":
        from safetensors.torch import load_file

        return load_file(file)
    import torch

    # weights_only refuses every pickled object that is no plain tensor, before it is built.
    return torch.load(file, map_location="cpu", weights_only=True)
