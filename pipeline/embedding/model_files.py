"""A model's folder, from a setting or the Hugging Face hub, and the weights in it.

Weights are read from safetensors or from a torch file. A torch file that holds code is refused; no
remote code is run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.errors import SettingError
from pipeline.text import one_line

if TYPE_CHECKING:
    from torch import Tensor

# Exports of the same weights to formats that citeloom does not read: BGE-M3's to ONNX has 2.3 GB.
_UNUSED = [
    "onnx/*",
    "openvino/*",
    "imgs/*",
    "*.onnx",
    "*.onnx_data",
    "*.h5",
    "*.msgpack",
    "*.ot",
    "*.gguf",
]
WEIGHT_FILES = ("model.safetensors", "pytorch_model.bin")
_FIRST = "embeddings.word_embeddings.weight"


def is_folder(path: str, setting: str, otherwise: str) -> bool:
    """Whether a path is a folder, or else a name of the hub (BAAI/bge-m3, BAAI/bge-m3@revision).

    setting: the setting's name, and otherwise: what else to do, for the message. Raises
    SettingError where the path is neither.
    """
    if Path(path).expanduser().is_dir():
        return True
    if path.count("/") != 1 or path.startswith((".", "/", "~")) or path.endswith("/"):
        raise SettingError(
            f"{setting}: there is no folder {path}; give one, or a name of the hub such as"
            f" BAAI/bge-m3, or {otherwise}"
        )
    return False


def find_folder(
    path: str,
    setting: str,
    otherwise: str,
    lacking: Callable[[Path], Sequence[str]] = lambda folder: (),
) -> Path:
    """The folder `path`, or the model of this name from the hub's cache or the hub.

    setting, otherwise: as in `is_folder`. lacking: names the files that a folder lacks; those of a
    hub's model are fetched. Raises SettingError where there is no such model, or a file is lacking.
    """
    if not is_folder(path, setting, otherwise):
        return _hub_folder(path, setting, otherwise, lacking)
    folder = Path(path).expanduser()
    if files := lacking(folder):
        raise SettingError(
            f"{setting}: {folder} lacks {', '.join(files)}: give the model's whole folder"
        )
    return folder


def cached_folder(name: str) -> Path | None:
    """The folder of a hub's model in the hub's cache, without a request; None if there is none.

    Files may be absent where another program filled the cache: it fetched those that it reads.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    model, _, revision = name.partition("@")
    try:
        folder = snapshot_download(
            model, revision=revision or None, ignore_patterns=_UNUSED, local_files_only=True
        )
    except LocalEntryNotFoundError:
        return None
    return Path(folder)


def _hub_folder(
    name: str, setting: str, otherwise: str, lacking: Callable[[Path], Sequence[str]]
) -> Path:
    import httpx2
    from huggingface_hub import snapshot_download

    model, _, revision = name.partition("@")
    folder = cached_folder(name)
    commit = revision or None
    files: Sequence[str] = ()
    if folder is not None:
        files = lacking(folder)
        if not files:
            return folder
        # The same commit as in the cache, so that weights in it are not fetched again.
        commit = folder.name
    cause: Exception | None = None
    reason = "it has none, or does not answer"
    try:
        folder = Path(snapshot_download(model, revision=commit, ignore_patterns=_UNUSED))
        files = lacking(folder)
        if not files:
            return folder
    except (OSError, ValueError, httpx2.HTTPError) as error:
        cause = error
        # A timeout may have no message.
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
    fault = f"is neither a folder nor to be had from the Hugging Face hub ({reason})"
    if files:
        fault = f"in the hub's cache lacks {', '.join(files)}, and the hub gives none ({reason})"
    pinned = f" --revision {revision}" if revision else ""
    raise SettingError(
        f"{setting}: {name} {fault}: run `hf download {model}{pinned} --exclude 'onnx/*'` where"
        f" there is a network, set it to the folder of the model's files, or {otherwise}"
    ) from cause


def tokenizer_class(folder: Path) -> Any:
    """AutoTokenizer, or the class that it takes for BGE-M3: its import took 8 s on a GPU machine.

    Another class splits texts in another way.
    """
    file = folder / "tokenizer_config.json"
    if file.is_file():
        name = json.loads(file.read_text(encoding="utf-8")).get("tokenizer_class")
        if name in ("XLMRobertaTokenizer", "XLMRobertaTokenizerFast"):
            from transformers import XLMRobertaTokenizer

            return XLMRobertaTokenizer
    from transformers import AutoTokenizer

    return AutoTokenizer


def hide_progress_bars() -> None:
    """Have transformers show none while it loads weights."""
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]


def content_name(folder: Path, files: Iterable[str]) -> str:
    """A model's name: the folder's name, and 8 digits of a digest of its files.

    The digest is of names, sizes and both ends of the files, so two machines with one model agree.
    files: relative to the folder; absent ones are skipped.
    """
    digest = hashlib.sha256()
    for name in files:
        file = folder / name
        if file.is_file():
            digest.update(f"{name} {file.stat().st_size}".encode())
            digest.update(_ends(file))
    return f"{folder.resolve().name}@{digest.hexdigest()[:8]}"


def _ends(file: Path, most: int = 65_536) -> bytes:
    """The beginning and the end of a file; the whole would take long, since weights are 2 GB."""
    with file.open("rb") as stream:
        head = stream.read(most)
        stream.seek(max(most, file.stat().st_size - most))
        return head + stream.read(most)


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
    # Errors of safetensors, pickle, zipfile and torch share no base.
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

    # weights_only refuses a pickled object other than a plain tensor before it is built.
    return torch.load(file, map_location="cpu", weights_only=True)
