"""BGE-M3 on a model of its architecture made here: its name, what it cuts and leaves out, clear
refusals, weights that are read as weights alone; and FlagEmbedding as its engine, whose `encode`
test_parity.py compares.
"""

import json
import pickle
from operator import attrgetter

import numpy as np
import pytest

from benchmarks.vector_parity import TEXTS
from pipeline.embedding.bge_m3 import BgeM3, name_of
from pipeline.embedding.choice import model_name
from pipeline.embedding.encoder import shape_of
from pipeline.embedding.flag_embedding import FlagBgeM3
from pipeline.embedding.model_files import read_file
from pipeline.embedding.stages import EMBEDDINGS
from pipeline.engine.run import State, run_stage, state
from pipeline.errors import SettingError
from pipeline.settings import load_settings
from tests.cases import cases_beside
from tests.unit.embedding.planted_code import Planted
from tests.unit.index.building import make_workspace, write_month

# The first imports of transformers and FlagEmbedding take seconds.
pytestmark = pytest.mark.slow

TEXT = "a quick brown fox"
MONTH = "2024-03"
# Of unlike length, so that a pack of them is padded: a token spelt out, and texts that are cut.
MIXED = [*TEXTS.values(), "a <pad> b", *("a b c " * times for times in (1, 40, 7, 3, 60))]


@pytest.mark.parametrize("name", ["XLMRobertaTokenizer", "PreTrainedTokenizerFast"])
def test_texts_are_split_as_by_auto_tokenizer(own_m3, name):
    from transformers import AutoTokenizer

    file = own_m3 / "tokenizer_config.json"
    config = json.loads(file.read_text()) | {"tokenizer_class": name}
    file.write_text(json.dumps(config))
    text = "beam  beams "
    expected = AutoTokenizer.from_pretrained(str(own_m3))(text)["input_ids"]
    (batch,) = BgeM3(str(own_m3), "cpu", "fp32").encode_stream([text])
    assert batch.tokens == len(expected)


@cases_beside("missing")
def test_a_folder_without_one_of_its_parts_is_refused(own_m3, missing):
    (own_m3 / missing).unlink()
    with pytest.raises(SettingError, match=f"CITELOOM_EMBEDDER_PATH.*{missing}"):
        BgeM3(str(own_m3))


@cases_beside("config")
def test_a_configuration_that_is_none_is_named(own_m3, config):
    (own_m3 / "config.json").write_text(config)
    with pytest.raises(SettingError, match=r"config\.json (has no|cannot be read)"):
        BgeM3(str(own_m3))


def test_a_model_is_named_by_its_content_and_int8(m3, own_m3):
    assert name_of(str(own_m3), "auto") == name_of(str(m3), "bf16") != name_of(str(m3), "int8")
    (own_m3 / "sparse_linear.pt").write_bytes(b"another head")
    assert name_of(str(own_m3), "auto") != name_of(str(m3), "auto")
    assert name_of("BAAI/bge-m3", "int8") == "BAAI/bge-m3+int8"


@pytest.fixture
def trace(tmp_path):
    file = tmp_path / "trace"
    yield file
    assert not file.exists(), "the planted code was run"


@pytest.mark.parametrize("name", ["pytorch_model.bin", "sparse_linear.pt"])
@pytest.mark.parametrize("plain", [True, False])
def test_code_planted_among_the_weights_is_refused(own_m3, trace, name, plain):
    import torch

    if name == "pytorch_model.bin":
        (own_m3 / "model.safetensors").unlink()
    weights = {"weight": Planted(trace)}
    if plain:
        (own_m3 / name).write_bytes(pickle.dumps(weights))
    else:
        torch.save(weights, own_m3 / name)
    with pytest.raises(SettingError, match=f"{name} cannot be read for its weights alone"):
        BgeM3(str(own_m3), "cpu").encode([TEXT])


def test_a_torch_file_with_a_prefix_gives_the_vectors_of_safetensors(m3, own_m3):
    import torch

    weights = {
        f"roberta.{name}": weight
        for name, weight in read_file(own_m3 / "model.safetensors").items()
    }
    torch.save(weights | {"lm_head.bias": torch.zeros(3)}, own_m3 / "pytorch_model.bin")
    (own_m3 / "model.safetensors").unlink()
    before, after = (BgeM3(str(each), "cpu", "fp32").encode([TEXT])[0] for each in (m3, own_m3))
    np.testing.assert_allclose(before.dense, after.dense, atol=1e-5)
    np.testing.assert_allclose(before.sparse.weights, after.sparse.weights, atol=1e-5)


@cases_beside("absent", "message")
def test_weights_that_are_none_are_named(own_m3, absent, message):
    from safetensors.torch import save_file

    file = own_m3 / "model.safetensors"
    if not absent:
        file.write_bytes(b"no weights")
    else:
        weights = read_file(file).items()
        save_file({name: weight for name, weight in weights if not name.startswith(absent)}, file)
    with pytest.raises(SettingError, match=message):
        BgeM3(str(own_m3), "cpu").encode([TEXT])


@cases_beside("change")
def test_another_kind_of_encoder_is_refused(change):
    sizes = ("hidden_size", "num_hidden_layers", "num_attention_heads", "max_position_embeddings")
    config = dict(zip(sizes, (8, 1, 2, 10), strict=True))
    assert shape_of(config).longest == 8
    assert shape_of(config | {"model_type": "bert"}).longest == 10
    with pytest.raises(ValueError, match="no encoder with gelu"):
        shape_of(config | change)


def test_a_stream_has_the_vectors_of_flagembedding_in_order(m3):
    texts = MIXED * 60
    ours = list(BgeM3(str(m3), "cpu", "fp32").encode_stream(texts))
    theirs = list(FlagBgeM3(str(m3), "cpu", tokens=600).encode_stream(texts))
    assert len(theirs) > 1
    for one, other in zip(theirs, ours, strict=True):
        np.testing.assert_allclose(one.dense, other.dense, atol=2e-3)
        for equal in ("sparse.offsets", "sparse.ids", "truncated"):
            np.testing.assert_array_equal(*map(attrgetter(equal), (one, other)))
        np.testing.assert_allclose(one.sparse.weights, other.sparse.weights, atol=1e-4)
        assert one.tokens == other.tokens


def test_the_engine_computes_bge_m3_alone_and_in_float32_on_a_cpu(m3):
    with pytest.raises(SettingError, match="CITELOOM_EMBEDDER_PRECISION"):
        FlagBgeM3(str(m3), "cpu", "bf16").encode(["a text"])
    with pytest.raises(
        SettingError, match="CITELOOM_EMBEDDER_ENGINE: flagembedding computes BGE-M3 alone"
    ):
        load_settings(_env_file=None, embedder_engine="flagembedding")


def test_a_month_of_either_engine_is_a_month_of_the_model(m3, tmp_path):
    shared = {"embedder": "bge-m3", "embedder_path": str(m3), "embedder_device": "cpu"}
    theirs, ours = (
        make_workspace(tmp_path, embedder_engine=engine, **shared)
        for engine in ("flagembedding", "citeloom")
    )
    write_month(theirs)
    assert run_stage(EMBEDDINGS, theirs, MONTH).measured["engine"] == "flagembedding"
    assert state(EMBEDDINGS, ours, MONTH) is State.DONE
    assert model_name(theirs.settings) == model_name(ours.settings)
    assert run_stage(EMBEDDINGS, ours, MONTH, force=True).measured["engine"] == "citeloom"
