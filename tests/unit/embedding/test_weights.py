"""Weights are read as weights alone: a file that holds code is refused before the code runs."""

import pickle

import numpy as np
import pytest

from pipeline.embedding.bge_m3 import BgeM3
from pipeline.embedding.encoder import shape_of
from pipeline.embedding.model_files import read_file
from pipeline.errors import SettingError
from tests.unit.embedding.planted_code import Planted
from tests.unit.embedding.tiny_m3 import make_tiny_m3

TEXT = "a quick brown fox"


@pytest.fixture
def folder(tmp_path):
    return make_tiny_m3(tmp_path / "m3")


@pytest.fixture
def trace(tmp_path):
    file = tmp_path / "trace"
    yield file
    assert not file.exists(), "the planted code was run"


@pytest.mark.parametrize("name", ["pytorch_model.bin", "sparse_linear.pt"])
@pytest.mark.parametrize("plain", [True, False])
def test_code_planted_among_the_weights_is_refused(folder, trace, name, plain):
    import torch

    (folder / "model.safetensors").rename(folder / "kept")
    if not name.startswith("pytorch"):
        (folder / "kept").rename(folder / "model.safetensors")
    if plain:
        (folder / name).write_bytes(pickle.dumps({"weight": Planted(trace)}))
    else:
        torch.save({"weight": Planted(trace)}, folder / name)
    with pytest.raises(
        SettingError, match=f"CITELOOM_EMBEDDER_PATH: .*{name} cannot be read for its weights alone"
    ):
        BgeM3(str(folder), "cpu").encode([TEXT])


def test_a_torch_file_with_a_prefix_gives_the_vectors_of_safetensors(folder):
    import torch

    (before,) = BgeM3(str(folder), "cpu", "fp32").encode([TEXT])
    weights = {
        f"roberta.{name}": weight
        for name, weight in read_file(folder / "model.safetensors").items()
    }
    torch.save(weights | {"lm_head.bias": torch.zeros(3)}, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    (after,) = BgeM3(str(folder), "cpu", "fp32").encode([TEXT])
    np.testing.assert_allclose(before.dense, after.dense, atol=1e-5)
    np.testing.assert_allclose(before.sparse.weights, after.sparse.weights, atol=1e-5)


def _save_other_weights(file):
    import torch
    from safetensors.torch import save_file

    save_file({"something": torch.zeros(2)}, file)


def _save_without_a_layer(file):
    from safetensors.torch import save_file

    weights = read_file(file)
    del weights["encoder.layer.1.output.dense.weight"]
    save_file(weights, file)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda file: file.write_bytes(b"no weights"), "cannot be loaded"),
        (_save_other_weights, r"model\.safetensors holds no embeddings\.word_embeddings\.weight"),
        (_save_without_a_layer, r"cannot be loaded \('encoder\.layer\.1\.output\.dense\.weight'\)"),
    ],
)
def test_weights_that_are_none_are_named(folder, damage, message):
    damage(folder / "model.safetensors")
    with pytest.raises(SettingError, match=message):
        BgeM3(str(folder), "cpu").encode([TEXT])


@pytest.mark.parametrize(
    "change", [{"hidden_act": "relu"}, {"position_embedding_type": "relative_key"}]
)
def test_another_kind_of_encoder_is_refused(change):
    config = {
        "hidden_size": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "max_position_embeddings": 10,
    }
    assert shape_of(config).longest == 8
    assert shape_of(config | {"model_type": "bert"}).longest == 10
    with pytest.raises(ValueError, match="no encoder with gelu"):
        shape_of(config | change)
