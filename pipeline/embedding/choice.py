"""Which embedder the settings name."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from pipeline.embedding.bge_m3 import BgeM3, name_of
from pipeline.embedding.flag_embedding import FlagBgeM3
from pipeline.embedding.minilm import NAME, MiniLM

if TYPE_CHECKING:
    from pipeline.embedding.embedder import Embedder
    from pipeline.settings import Settings


def make_embedder(settings: Settings) -> Embedder:
    """The embedder that the settings name; one per process, so that weights are loaded once.

    Raises SettingError where its model is not there.
    """
    device = settings.embedder_device
    precision = settings.embedder_precision
    tokens = settings.embedder_tokens
    if settings.embedder == "minilm":
        return _minilm(device, precision, tokens)
    engine, path = settings.embedder_engine, settings.embedder_path
    return _bge_m3(engine, path, device, precision, tokens, settings.embedder_colbert)


@lru_cache(maxsize=4)
def _minilm(device: str, precision: str, tokens: int) -> Embedder:
    return MiniLM(device, precision, tokens)


@lru_cache(maxsize=4)
def _bge_m3(
    engine: str, path: str, device: str, precision: str, tokens: int, colbert: bool
) -> Embedder:
    model = FlagBgeM3 if engine == FlagBgeM3.engine else BgeM3
    return model(path, device, precision, tokens, colbert=colbert)


def makes_colbert(settings: Settings) -> bool:
    """Whether ColBERT vectors are made: the settings ask for them, and the model has them."""
    return settings.embedder == "bge-m3" and settings.embedder_colbert


def model_name(settings: Settings) -> str:
    """The name of `make_embedder(settings)`, without loading a model or a request.

    Raises SettingError where the model is a folder that is not there.
    """
    if settings.embedder == "minilm":
        return NAME
    return name_of(settings.embedder_path, settings.embedder_precision)
