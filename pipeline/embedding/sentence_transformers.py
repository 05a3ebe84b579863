"""Dense models of sentence-transformers, on the engine's windows and packs.

The library computes the vectors, with the modules that the folder's modules.json lists. Prompts,
dimensions and the limit of tokens are read from the folder's files, so that naming a model imports
neither torch nor the library.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.embedding.device import DeviceModel, torch_type
from pipeline.embedding.encoder import Heads
from pipeline.embedding.engine import PackedEmbedder
from pipeline.embedding.model_files import content_name, find_folder, hide_progress_bars, is_folder
from pipeline.embedding.packing import padded_features, plain
from pipeline.errors import SettingError
from pipeline.text import one_line

if TYPE_CHECKING:
    from torch import Tensor

    from pipeline.embedding.embedder import VectorBatch, Vectors
    from pipeline.embedding.encoder import Tokens

_SETTING = "CITELOOM_EMBEDDER"
_OTHERWISE = "minilm or bge-m3"
_MODULES = ("Transformer", "Pooling", "Dense", "Normalize")
# Names of the passages' prompt: the first of them that a folder has is used.
_PASSAGE_PROMPTS = ("document", "passage", "corpus")
_PART_OF_MODEL = {".json", ".txt", ".model", ".safetensors", ".bin"}
# Architectures whose position embeddings begin after the padding id.
_OFFSET_POSITIONS = {"roberta", "xlm-roberta", "xlm-roberta-xl", "camembert", "mpnet"}
# Tokenizers without a limit say 10^30.
_MOST_TOKENS = 1 << 20


class SentenceEmbedder(PackedEmbedder):
    """An embedder with the model of one folder; its weights are loaded on first use.

    The folder's prompt "query" is put before a query, and its prompt "document", "passage" or
    "corpus" before a passage. Vectors have unit length, also without a module Normalize. Texts of a
    pack are padded to the longest, so the last digits of a vector may differ with the texts that
    are encoded together.

    path: a folder, or a name of the hub. Raises SettingError where the folder is absent,
    incomplete, or of another kind.
    """

    engine = "sentence-transformers"
    has_sparse = False
    precisions = ("fp16", "fp32")

    def __init__(
        self, path: str, device: str = "auto", precision: str = "auto", tokens: int = 0
    ) -> None:
        super().__init__(device, precision, tokens)
        self.name = name_of(path)
        self._folder = find_model(path)
        self._config = read_config(self._folder)
        self.dimensions = self._config.dimensions
        self.max_tokens = self._config.max_tokens
        self._networks: dict[str, Any] = {}

    def encode(self, texts: Sequence[str]) -> list[Vectors]:
        """Vectors of passages, in float32."""
        return super().encode([self._config.passage_prompt + text for text in texts])

    def encode_stream(self, texts: Iterable[str]) -> Iterator[VectorBatch]:
        """Vectors of passages, in float16 and the texts' order, a window of texts at a time."""
        return super().encode_stream(self._config.passage_prompt + text for text in texts)

    def encode_queries(self, texts: Sequence[str]) -> list[Vectors]:
        """Vectors of questions, in float32, made in the caller's thread."""
        return super().encode_queries([self._config.query_prompt + text for text in texts])

    def _model(self, device: str, precision: str) -> DeviceModel:
        network = self._network(device)
        padding = network.tokenizer.pad_token_id or 0

        def encode(tokens: Tokens) -> Tensor:
            vectors: Tensor = network(padded_features(tokens, padding))["sentence_embedding"]
            return vectors

        return DeviceModel(encode, self._unit_heads, device)

    def _unit_heads(self, vectors: Tensor, tokens: Tokens, slots: Tensor, terms: int) -> Heads:
        import torch

        dense = vectors[:, : self.dimensions].float()
        return Heads(torch.nn.functional.normalize(dense, dim=-1), None)

    @cached_property
    def _tokenizer(self) -> Any:
        return plain(self._network(self._devices[0]).tokenizer.backend_tokenizer)

    def _network(self, device: str) -> Any:
        """The library's model on a device."""
        if device not in self._networks:
            self._networks[device] = self._load(device)
        return self._networks[device]

    def _load(self, device: str) -> Any:
        if self._precision not in ("fp32", "bf16", "fp16"):
            raise SettingError(
                "CITELOOM_EMBEDDER_PRECISION: sentence-transformers does not compute in"
                f" {self._precision}: set it to auto, fp32, bf16 or fp16"
            )
        from sentence_transformers import SentenceTransformer

        hide_progress_bars()
        try:
            return SentenceTransformer(
                str(self._folder),
                device=device,
                model_kwargs={"dtype": torch_type(self._precision)},
                local_files_only=True,
            ).eval()
        # Errors of transformers, tokenizers and safetensors over a broken file share no base.
        except Exception as error:
            raise SettingError(
                f"{_SETTING}: the model in {self._folder} cannot be loaded"
                f" ({one_line(str(error))[:300]}): copy it again, or take another"
            ) from error


def name_of(path: str) -> str:
    """The model's name: that of the hub, or a folder's name with 8 digits of its files' digest.

    Raises SettingError for a folder that does not exist, or lacks a part.
    """
    if not is_folder(path, _SETTING, _OTHERWISE):
        return path
    folder = find_model(path)
    return content_name(folder, _model_files(folder))


def find_model(path: str) -> Path:
    """The model's folder, from the hub's cache or the hub where `path` is not a folder.

    Raises SettingError where it is not there, or lacks a part.
    """
    return find_folder(path, _SETTING, _OTHERWISE, lacking_files)


def lacking_files(folder: Path) -> list[str]:
    """The files that a folder of sentence-transformers should have and does not."""
    if not (folder / "modules.json").is_file():
        return ["modules.json"]
    lacking: list[str] = []
    for kind, path in _modules(folder):
        if kind == "Normalize":
            continue
        if not (path / "config.json").is_file():
            lacking.append((path / "config.json").relative_to(folder).as_posix())
        if kind == "Transformer" and not [*path.glob("*.safetensors"), *path.glob("*.bin")]:
            lacking.append("model.safetensors or pytorch_model.bin")
    return lacking


def _modules(folder: Path) -> list[tuple[str, Path]]:
    """The class and the folder of each module. Raises SettingError for a class that citeloom does
    not run.
    """
    file = folder / "modules.json"
    try:
        entries = [(module["type"], folder / module["path"]) for module in _read_json(file)]
    except (KeyError, TypeError) as error:
        raise SettingError(
            f"{_SETTING}: {file} has another form ({error!r}): copy the model's folder again"
        ) from error
    modules = []
    for name, path in entries:
        package, _, kind = name.rpartition(".")
        if not package.startswith("sentence_transformers.") or kind not in _MODULES:
            raise SettingError(
                f"{_SETTING}: {file} names {name}, and citeloom runs {', '.join(_MODULES)} of"
                " sentence-transformers alone: take another model"
            )
        modules.append((kind, path))
    return modules


def _model_files(folder: Path) -> list[str]:
    """The files that the vectors depend on, relative to the folder."""
    folders = {folder, *(path for _, path in _modules(folder))}
    return sorted(
        file.relative_to(folder).as_posix()
        for path in folders
        for file in path.glob("*")
        if file.suffix in _PART_OF_MODEL
    )


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """The configuration in a folder's files."""

    dimensions: int
    max_tokens: int
    query_prompt: str
    passage_prompt: str


def read_config(folder: Path) -> ModelConfig:
    """Read a folder's configuration. Raises SettingError where the model is of a kind that citeloom
    cannot use, or a file has another form.
    """
    try:
        return _read_config(folder)
    except (LookupError, TypeError, AttributeError) as error:
        raise SettingError(
            f"{_SETTING}: a configuration file of {folder} has another form ({error!r}): copy the"
            " model's folder again, or take another"
        ) from error


def _read_config(folder: Path) -> ModelConfig:
    modules = dict(_modules(folder))
    if "Transformer" not in modules or "Pooling" not in modules:
        raise SettingError(
            f"{_SETTING}: {folder / 'modules.json'} has no Transformer and Pooling, so it gives no"
            " dense vectors: take another model"
        )
    config = _read_json(folder / "config_sentence_transformers.json", default={})
    pooling = _read_json(modules["Pooling"] / "config.json")
    prompts = config.get("prompts") or {}
    query = prompts.get("query") or ""
    # The library itself takes "document" alone: docs/contributing/upstream.md.
    passages = [prompts[name] for name in _PASSAGE_PROMPTS if prompts.get(name)]
    passage = passages[0] if passages else ""
    if (query or passage) and pooling.get("include_prompt") is False:
        raise SettingError(
            f"{_SETTING}: {modules['Pooling']} leaves the prompt out of its mean (include_prompt),"
            " which citeloom cannot do: take another model"
        )
    similarity = config.get("similarity_fn_name") or "cosine"
    if similarity != "cosine" and "Normalize" not in modules:
        raise SettingError(
            f"{_SETTING}: the vectors of {folder} are compared by {similarity}, and citeloom's"
            " indexes compare by cosine: take another model"
        )
    return ModelConfig(
        _dimensions(modules, config), _max_tokens(modules["Transformer"]), query, passage
    )


def _dimensions(modules: Mapping[str, Path], config: Mapping[str, Any]) -> int:
    if "Dense" in modules:
        dimensions = _read_json(modules["Dense"] / "config.json")["out_features"]
    else:
        pooling = _read_json(modules["Pooling"] / "config.json")
        width = pooling.get("embedding_dimension") or pooling["word_embedding_dimension"]
        # Newer files name one mode or a list of them, older ones have a flag for each.
        modes = pooling.get("pooling_mode") or [
            name for name in pooling if name.startswith("pooling_mode_") and pooling[name]
        ]
        if isinstance(modes, str):
            modes = [modes]
        dimensions = width * len(modes)
    return int(min(dimensions, config.get("truncate_dim") or dimensions))


def _max_tokens(folder: Path) -> int:
    """The library's limit of tokens, but never more than the model has positions for."""
    config = _read_json(folder / "config.json")
    length = _read_json(folder / "sentence_bert_config.json", default={}).get("max_seq_length")
    if length is None:
        length = _read_json(folder / "tokenizer_config.json", default={}).get("model_max_length")
    position_count = config.get("max_position_embeddings")
    if position_count and config.get("model_type") in _OFFSET_POSITIONS:
        position_count -= config.get("pad_token_id", 1) + 1
    limits: list[int] = [
        limit
        for limit in (length, position_count)
        if limit is not None and 0 < limit < _MOST_TOKENS
    ]
    if not limits:
        raise SettingError(
            f"{_SETTING}: no file of {folder} says how many tokens the model reads: write"
            " max_seq_length into sentence_bert_config.json"
        )
    return min(limits)


def _read_json(file: Path, default: Any = None) -> Any:
    """The content of a JSON file. default: for a file that does not exist, if not None.

    Raises SettingError where the file cannot be read.
    """
    if default is not None and not file.is_file():
        return default
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SettingError(
            f"{_SETTING}: {file} cannot be read ({error}): copy the model's folder again"
        ) from error
