"""BGE-M3: dense and lexical vectors from one pass (Chen et al. 2024, arXiv:2402.03216).

Only weights are read from the model's files. Tests compare the vectors with FlagEmbedding's.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.embedding.device import DeviceModel, torch_type
from pipeline.embedding.encoder import Encoder, M3Heads, Shape, shape_of
from pipeline.embedding.engine import PackedEmbedder
from pipeline.embedding.model_files import (
    WEIGHT_FILES,
    UnreadableWeights,
    content_name,
    find_folder,
    is_folder,
    read_file,
    read_weights,
    tokenizer_class,
)
from pipeline.embedding.packing import Window, cut, distinct_terms, plain, positions, tokenize
from pipeline.errors import SettingError

if TYPE_CHECKING:
    from torch import Tensor

_SETTING = "CITELOOM_EMBEDDER_PATH"
_OTHERWISE = "CITELOOM_EMBEDDER to minilm"
_MAX_TOKENS = 8192
# Tokens without a sparse weight: FlagEmbedding's _process_token_weights.
_SPECIAL = ("cls_token", "eos_token", "pad_token", "unk_token")
_FILES = ("config.json", "sparse_linear.pt", "colbert_linear.pt")
_TOKENIZERS = ("tokenizer.json", "sentencepiece.bpe.model")


class BgeM3(PackedEmbedder):
    """An embedder with BGE-M3; its weights are loaded on first use.

    path: a folder, or a name of the hub. Raises SettingError where the folder is absent, lacks a
    part or has an invalid config.json, or where the hub cannot be reached. Questions are encoded
    like passages (the model card: no instruction is needed).
    """

    has_sparse = True
    # fp16 is what FlagEmbedding runs BGE-M3 in on a GPU, and has three bits more than bf16.
    precisions = ("fp16", "bf16", "fp32")

    def __init__(
        self,
        path: str,
        device: str = "auto",
        precision: str = "auto",
        tokens: int = 0,
    ) -> None:
        super().__init__(device, precision, tokens)
        self.name = name_of(path, precision)
        self._folder = find_model(path)
        self._shape = _read_config(self._folder / "config.json")
        self.dimensions = self._shape.hidden
        self.max_tokens = min(_MAX_TOKENS, self._shape.longest)

    def _window(self, texts: Sequence[str]) -> Window:
        rows, truncated = cut(tokenize(self._tokenizer, texts), self.max_tokens)
        places = positions(rows, self._shape.padding)
        return Window(rows, places, distinct_terms(rows, self._special_tokens), truncated)

    def _model(self, device: str, precision: str) -> DeviceModel:
        kind = torch_type(precision)
        try:
            encoder = Encoder(read_weights(self._folder), self._shape, device, kind)
            heads = M3Heads(self._linear("sparse_linear.pt"), device)
        except (UnreadableWeights, KeyError) as error:
            raise self._broken(error) from error
        return DeviceModel(encoder, heads, device)

    def _broken(self, error: Exception) -> SettingError:
        return SettingError(
            f"{_SETTING}: the model in {self._folder} cannot be loaded ({error}): copy it again"
        )

    def _linear(self, name: str) -> tuple[Tensor, Tensor]:
        tensors = read_file(self._folder / name)
        return tensors["weight"], tensors["bias"]

    @cached_property
    def _tokenizer(self) -> Any:
        return plain(self._tokenizer_of_transformers.backend_tokenizer)

    @cached_property
    def _special_tokens(self) -> set[int]:
        """The ids of the special tokens that the folder names."""
        wrapper = self._tokenizer_of_transformers
        named = [role for role in _SPECIAL if role in wrapper.special_tokens_map]
        return {getattr(wrapper, f"{role}_id") for role in named}

    @cached_property
    def _tokenizer_of_transformers(self) -> Any:
        # Not tokenizer.json alone: transformers 5 builds XLM-RoBERTa's tokenizer anew from its
        # vocabulary, and splits at white space where the file may not; FlagEmbedding's ids are
        # those.
        try:
            return tokenizer_class(self._folder).from_pretrained(str(self._folder))
        # Errors of transformers and tokenizers over a broken file share no base.
        except Exception as error:
            raise self._broken(error) from error


def name_of(path: str, precision: str) -> str:
    """The model's name: that of the hub, or a folder's name with 8 digits of its files' digest.

    int8 and fp8 are part of the name, since their effect on BGE-M3's vectors was not measured.
    Raises SettingError for a folder that does not exist.
    """
    suffix = f"+{precision}" if precision in ("int8", "fp8") else ""
    if is_folder(path, _SETTING, _OTHERWISE):
        files = (*_FILES, *WEIGHT_FILES, *_TOKENIZERS)
        return content_name(Path(path).expanduser(), files) + suffix
    return path + suffix


def find_model(path: str) -> Path:
    """The model's folder, from the hub's cache or the hub where `path` is not a folder.

    Raises SettingError where it is not there, or lacks a part.
    """
    return find_folder(path, _SETTING, _OTHERWISE, lacking_files)


def lacking_files(folder: Path) -> list[str]:
    """The files of BGE-M3 that a folder lacks.

    sentence-transformers fetches neither sparse_linear.pt nor colbert_linear.pt, and without them
    FlagEmbedding computes with random heads.
    """
    lacking = [name for name in _FILES if not (folder / name).is_file()]
    for alternatives in (WEIGHT_FILES, _TOKENIZERS):
        if not any((folder / name).is_file() for name in alternatives):
            lacking.append(" or ".join(alternatives))
    return lacking


def _read_config(file: Path) -> Shape:
    try:
        return shape_of(json.loads(file.read_text(encoding="utf-8")))
    except KeyError as error:
        fault = f"has no {error}"
    except (OSError, ValueError, TypeError, AttributeError) as error:
        fault = f"cannot be read ({error})"
    raise SettingError(f"{_SETTING}: {file} {fault}: copy BGE-M3's folder again")
