"""Make the embedder that the settings name, and name its model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.embedding import bge_m3, sentence_transformers
from pipeline.embedding.bge_m3 import BgeM3
from pipeline.embedding.flag_embedding import FlagBgeM3
from pipeline.embedding.minilm import NAME, MiniLM
from pipeline.embedding.model_files import cached_folder
from pipeline.embedding.sentence_transformers import SentenceEmbedder
from pipeline.errors import require_packages

if TYPE_CHECKING:
    from pipeline.embedding.embedder import Embedder
    from pipeline.embedding.engine import PackedEmbedder
    from pipeline.settings import Settings

EMBEDDERS: Mapping[str, type[PackedEmbedder]] = {
    "minilm": MiniLM,
    "bge-m3": BgeM3,
    "sentence-transformers": SentenceEmbedder,
}
"""The class for each value of the setting `embedder`, with CITELOOM_EMBEDDER_ENGINE=citeloom."""

# `load_settings` replaces auto; settings that were made otherwise may have it.
_MINILM = ("minilm", "auto")


def make_embedder(settings: Settings) -> Embedder:
    """The embedder that the settings name; one per process, so that weights are loaded once.

    Raises SettingError where a package is absent, or the model is absent or incomplete.
    """
    _require_packages(settings)
    hardware = (
        settings.embedder_device,
        settings.embedder_precision,
        settings.embedder_tokens,
    )
    if settings.embedder in _MINILM:
        return _cached_embedder(MiniLM, *hardware)
    path = settings.embedder_path
    if settings.embedder == "sentence-transformers":
        return _cached_embedder(SentenceEmbedder, path, *hardware)
    model = FlagBgeM3 if settings.embedder_engine == FlagBgeM3.engine else BgeM3
    return _cached_embedder(model, path, *hardware)


def _require_packages(settings: Settings) -> None:
    if settings.embedder == "sentence-transformers":
        user = f"CITELOOM_EMBEDDER={settings.embedder_path}"
        require_packages(user, "sentence-transformers", "sentence_transformers")
    if settings.embedder == "bge-m3":
        require_packages("CITELOOM_EMBEDDER=bge-m3", "gpu", "transformers")
        if settings.embedder_engine == FlagBgeM3.engine:
            require_packages("CITELOOM_EMBEDDER_ENGINE=flagembedding", "papers", "FlagEmbedding")


@lru_cache(maxsize=4)
def _cached_embedder(model: Callable[..., Embedder], *arguments: str | int) -> Embedder:
    return model(*arguments)


def model_name(settings: Settings) -> str:
    """The name of `make_embedder(settings)`, without loading a model or sending a request.

    Raises SettingError where the model is a folder that does not exist.
    """
    if settings.embedder in _MINILM:
        return NAME
    if settings.embedder == "sentence-transformers":
        return sentence_transformers.name_of(settings.embedder_path)
    return bge_m3.name_of(settings.embedder_path, settings.embedder_precision)


def files_to_fetch(settings: Settings) -> list[str]:
    """The files that `make_embedder` would fetch from the hub, by the content of the hub's cache.

    Raises SettingError where a package is absent, and where the model is neither a folder nor a
    name of the hub.
    """
    _require_packages(settings)
    model_name(settings)
    path = settings.embedder_path
    if settings.embedder in _MINILM or Path(path).expanduser().is_dir():
        return []
    folder = cached_folder(path)
    if folder is None:
        return ["all files"]
    if settings.embedder == "sentence-transformers":
        return sentence_transformers.lacking_files(folder)
    return bge_m3.lacking_files(folder)
