"""BGE-M3: dense, lexical and ColBERT vectors from one pass (Chen et al. 2024, arXiv:2402.03216).

FlagEmbedding loads the model and defines its three heads; the loop over batches is ours, since FlagEmbedding's
answers any RuntimeError by a smaller batch, and runs its first batch twice. Not here: a fast loop for GPUs.

On a CPU a text is encoded alone and in float32, so its vectors do not depend on its neighbours. On CUDA, in float16
and in batches of like length: there the last places of a value may differ with the batch, the card and its driver,
and a float16 vector may differ in its last place between two machines.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.embedding.embedder import Vectors, batches, cut, pad, pick_device
from pipeline.errors import SettingError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Tokens of a padded batch on a GPU: with 16 heads, attention scores of a batch of four texts of 8,192 tokens would
# be 8 GB if they were ever held whole, and the hidden states of 32,768 tokens are 64 MB a layer.
_GPU_BUDGET = 32_768
_MAX_TOKENS = 8192
_FILES = ("config.json", "sparse_linear.pt", "colbert_linear.pt")
_WEIGHTS = ("model.safetensors", "pytorch_model.bin")
_TOKENIZERS = ("tokenizer.json", "sentencepiece.bpe.model")
# Of the hub's folder, the ONNX export is 2.3 GB that nobody here reads.
_UNUSED = ["onnx/*", "imgs/*", "*.onnx", "*.onnx_data"]


class BgeM3:
    """The embedder. The model's folder is found at once, its weights are loaded on first use.

    Raises SettingError where the folder is not there, lacks a part or has a config.json that is none, or where the hub
    cannot be reached.
    """

    sparse_idf = False

    def __init__(self, path: str, device: str = "auto", *, colbert: bool = False) -> None:
        self.name = name_of(path)
        self._folder = _find(path)
        self._wanted, self._colbert = device, colbert
        self.dimensions, positions = _read_config(self._folder / "config.json")
        self.max_tokens = min(_MAX_TOKENS, positions)

    def encode(self, texts: Sequence[str]) -> list[Vectors]:
        """Vectors of passages. A text beyond `max_tokens` is cut, and says so."""
        tokens = self._tokenize(texts)
        shown = [cut(ids, self.max_tokens) for ids in tokens]
        found: list[Any] = [None] * len(tokens)
        budget = 0 if self._device == "cpu" else _GPU_BUDGET
        for batch in batches([len(ids) for ids in shown], budget):
            outputs = self._forward([shown[place] for place in batch])
            for row, place in enumerate(batch):
                found[place] = self._vectors(outputs, row, shown[place], truncated=len(tokens[place]) > self.max_tokens)
        return found

    def encode_queries(self, texts: Sequence[str]) -> list[Vectors]:
        """Vectors of questions: the model makes no difference (its model card: no instruction is needed)."""
        return self.encode(texts)

    def _tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        if not texts:
            return []
        ids: list[list[int]] = self._model.tokenizer(list(texts), truncation=False, verbose=False)["input_ids"]
        return ids

    def _forward(self, tokens: list[list[int]]) -> dict[str, NDArray[np.float32]]:
        import torch

        ids, mask = (tensor.to(self._device) for tensor in pad(tokens, self._model.tokenizer.pad_token_id))
        with torch.inference_mode():
            outputs = self._model.model(
                {"input_ids": ids, "attention_mask": mask},
                return_dense=True,
                return_sparse=True,
                return_colbert_vecs=self._colbert,
            )
        return {name: tensor.float().cpu().numpy() for name, tensor in outputs.items()}

    def _vectors(
        self, outputs: dict[str, NDArray[np.float32]], row: int, ids: list[int], *, truncated: bool
    ) -> Vectors:
        colbert = None
        if self._colbert:
            # One vector for every token but the first: FlagEmbedding's _process_colbert_vecs.
            colbert = outputs["colbert_vecs"][row, : len(ids) - 1]
        words, weights = self._lexical(ids, outputs["sparse_vecs"][row, : len(ids), 0])
        return Vectors(outputs["dense_vecs"][row], words, weights, colbert, truncated=truncated)

    def _lexical(self, ids: list[int], weights: NDArray[np.float32]) -> tuple[NDArray[np.uint32], NDArray[np.float32]]:
        """The greatest weight of every token but the special ones: FlagEmbedding's _process_token_weights."""
        import numpy as np

        words, places = np.unique(np.asarray(ids, dtype=np.uint32), return_inverse=True)
        greatest = np.zeros(len(words), dtype=np.float32)
        np.maximum.at(greatest, places, weights)
        kept = (greatest > 0) & ~np.isin(words, self._special)
        return words[kept], greatest[kept]

    @cached_property
    def _special(self) -> NDArray[np.uint32]:
        import numpy as np

        tokenizer = self._model.tokenizer
        names = ("cls_token_id", "eos_token_id", "pad_token_id", "unk_token_id")
        return np.array([getattr(tokenizer, name) for name in names], dtype=np.uint32)

    @cached_property
    def _device(self) -> str:
        return pick_device(self._wanted)

    @cached_property
    def _model(self) -> Any:
        from FlagEmbedding import BGEM3FlagModel

        on_gpu = self._device.startswith("cuda")
        try:
            loaded = BGEM3FlagModel(str(self._folder), use_fp16=on_gpu, devices=self._device)
        except Exception as error:  # safetensors', torch's and JSON's errors over a broken file share no other base
            raise SettingError(
                f"CITELOOM_EMBEDDER_PATH: the model in {self._folder} cannot be loaded ({error}): copy it again"
            ) from error
        loaded.model.to(self._device)
        loaded.model.train(False)
        return loaded


def name_of(path: str) -> str:
    """The model's name: that of the hub, or a folder's name with 8 digits of what lies in it.

    Absolute paths stay out, so that two machines with one model agree. Raises SettingError for a folder that is not
    there.
    """
    folder = Path(path).expanduser()
    if folder.is_dir():
        return f"{folder.resolve().name}@{_fold(folder)}"
    if not _is_hub_name(path):
        raise SettingError(
            f"CITELOOM_EMBEDDER_PATH: there is no folder {path}; give the folder of BGE-M3's files, or a name of the "
            f"Hugging Face hub such as BAAI/bge-m3"
        )
    return path


def _fold(folder: Path) -> str:
    """8 hexadecimal digits over the sizes and the ends of the model's files: 2 GB of weights are not read for it."""
    digest = hashlib.sha256()
    for name in (*_FILES, *_WEIGHTS, *_TOKENIZERS):
        file = folder / name
        if file.is_file():
            digest.update(f"{name} {file.stat().st_size}".encode())
            digest.update(_ends(file))
    return digest.hexdigest()[:8]


def _ends(file: Path, most: int = 65_536) -> bytes:
    with file.open("rb") as stream:
        head = stream.read(most)
        stream.seek(max(most, file.stat().st_size - most))
        return head + stream.read(most)


def _is_hub_name(path: str) -> bool:
    return path.count("/") == 1 and not path.startswith((".", "/", "~")) and not path.endswith("/")


def _find(path: str) -> Path:
    """The model's folder, from the hub's cache or the hub where `path` is none."""
    folder = Path(path).expanduser()
    if not folder.is_dir():
        folder = _download(path)
    lacking = [name for name in _FILES if not (folder / name).is_file()]
    for alternatives in (_WEIGHTS, _TOKENIZERS):
        if not any((folder / name).is_file() for name in alternatives):
            lacking.append(" or ".join(alternatives))
    if lacking:
        # FlagEmbedding would go on with random heads where sparse_linear.pt or colbert_linear.pt is absent.
        raise SettingError(f"CITELOOM_EMBEDDER_PATH: {folder} lacks {', '.join(lacking)}: give BGE-M3's whole folder")
    return folder


def _read_config(file: Path) -> tuple[int, int]:
    """Length of the dense vector, and tokens that the model has positions for."""
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
        # XLM-RoBERTa counts positions from pad_token_id + 1.
        positions = int(config["max_position_embeddings"]) - int(config.get("pad_token_id", 1)) - 1
        return int(config["hidden_size"]), positions
    except KeyError as error:
        fault = f"has no {error}"
    except (OSError, ValueError, TypeError, AttributeError) as error:
        fault = f"cannot be read ({error})"
    raise SettingError(f"CITELOOM_EMBEDDER_PATH: {file} {fault}: copy BGE-M3's folder again")


def _download(name: str) -> Path:
    import httpx
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    with suppress(LocalEntryNotFoundError):
        return Path(snapshot_download(name, ignore_patterns=_UNUSED, local_files_only=True))
    try:
        return Path(snapshot_download(name, ignore_patterns=_UNUSED))
    except (OSError, ValueError, httpx.HTTPError) as error:
        reason = str(error).strip().splitlines()[0]
        raise SettingError(
            f"CITELOOM_EMBEDDER_PATH: {name} is neither a folder nor to be had from the Hugging Face hub ({reason}): "
            f"set it to the folder of BGE-M3's files, or CITELOOM_EMBEDDER to minilm"
        ) from error
