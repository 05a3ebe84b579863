"""Models with random weights that the tests share, made once."""

import shutil
from pathlib import Path

import pytest

from tests.unit.embedding.tiny_m3 import make_tiny_m3
from tests.unit.embedding.tiny_sentence_model import PROMPTS, make_tiny_sentence_model


@pytest.fixture(scope="session")
def m3(tmp_path_factory):
    """A small BGE-M3 that reads 128 tokens."""
    folder = tmp_path_factory.mktemp("models") / "m3"
    return make_tiny_m3(folder, positions=130, scale=8.0)


@pytest.fixture
def own_m3(m3, tmp_path):
    """A copy for a test that changes something in it."""
    return Path(shutil.copytree(m3, tmp_path / "m3"))


@pytest.fixture(scope="session")
def sentence_models(tmp_path_factory):
    """Small models of sentence-transformers by family."""
    folder = tmp_path_factory.mktemp("models")
    return {
        family: make_tiny_sentence_model(folder / family, family, PROMPTS)
        for family in ("bert", "modernbert")
    }


@pytest.fixture
def bert(sentence_models, tmp_path):
    """A copy of one for a test that changes something in it."""
    return Path(shutil.copytree(sentence_models["bert"], tmp_path / "bert"))
