"""BGE-M3 on a model of its architecture made here: its name, what it cuts and leaves out, and clear
refusals.
"""

import json
import shutil
from pathlib import Path

import pytest

from pipeline.embedding.bge_m3 import BgeM3, name_of
from pipeline.errors import SettingError
from tests.unit.embedding.tiny_m3 import POSITIONS, make_tiny_m3

# The first import of transformers takes seconds.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_tiny_m3(tmp_path_factory.mktemp("models") / "tiny-m3")


def test_a_text_beyond_the_models_positions_is_cut(folder):
    tiny = BgeM3(str(folder), "cpu", "fp32")
    assert tiny.max_tokens == POSITIONS - 2
    short, long = tiny.encode(["a b", "a b " * 100])
    assert (short.truncated, long.truncated) == (False, True)
    (batch,) = tiny.encode_stream(["a b " * 100])
    assert batch.tokens == tiny.max_tokens


@pytest.fixture
def broken(folder, tmp_path):
    """A copy for a test that breaks something in it."""
    return Path(shutil.copytree(folder, tmp_path / "tiny-m3"))


@pytest.mark.parametrize("name", ["XLMRobertaTokenizer", "PreTrainedTokenizerFast"])
def test_texts_are_split_as_by_auto_tokenizer(broken, name):
    from transformers import AutoTokenizer

    file = broken / "tokenizer_config.json"
    config = json.loads(file.read_text()) | {"tokenizer_class": name}
    file.write_text(json.dumps(config))
    text = "beam  beams "
    expected = AutoTokenizer.from_pretrained(str(broken))(text)["input_ids"]
    (batch,) = BgeM3(str(broken), "cpu", "fp32").encode_stream([text])
    assert batch.tokens == len(expected)


@pytest.mark.parametrize(
    "missing",
    ["config.json", "sparse_linear.pt", "colbert_linear.pt", "model.safetensors", "tokenizer.json"],
)
def test_a_folder_without_one_of_its_parts_is_refused(broken, missing):
    (broken / missing).unlink()
    with pytest.raises(SettingError, match=f"CITELOOM_EMBEDDER_PATH.*{missing}"):
        BgeM3(str(broken))


@pytest.mark.parametrize(
    "config", ["junk", "[]", "{}", '{"hidden_size": 8, "max_position_embeddings": null}']
)
def test_a_configuration_that_is_none_is_named(broken, config):
    (broken / "config.json").write_text(config)
    with pytest.raises(
        SettingError, match=r"CITELOOM_EMBEDDER_PATH: .*config\.json (has no|cannot be read)"
    ):
        BgeM3(str(broken))


def test_a_model_is_named_by_its_content_and_int8(folder, broken):
    assert (
        name_of(str(broken), "auto") == name_of(str(folder), "bf16") != name_of(str(folder), "int8")
    )
    (broken / "sparse_linear.pt").write_bytes(b"another head")
    assert name_of(str(broken), "auto") != name_of(str(folder), "auto")
    assert name_of("BAAI/bge-m3", "int8") == "BAAI/bge-m3+int8"
