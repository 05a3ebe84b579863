"""BGE-M3 on a model of its architecture made here: the same vectors as FlagEmbedding's own, and clear refusals."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.embedding.bge_m3 import BgeM3, name_of
from pipeline.errors import SettingError
from tests.unit.embedding.tiny_m3 import DIMENSIONS, POSITIONS, make_tiny_m3

TEXTS = ["a quick brown fox", "jumps", "over the lazy dog and the lazy cat", "", "§ unknown signs §"]

# FlagEmbedding's import alone takes 10 s and more.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_m3(tmp_path_factory.mktemp("models") / "tiny-m3")


@pytest.fixture(scope="module")
def tiny(folder: Path) -> BgeM3:
    return BgeM3(str(folder), "cpu", "fp32", colbert=True)


@pytest.fixture(scope="module")
def theirs(folder: Path) -> dict[str, Any]:
    from FlagEmbedding import BGEM3FlagModel

    model = BGEM3FlagModel(str(folder), use_fp16=False, devices="cpu")
    found: dict[str, Any] = model.encode(
        TEXTS, batch_size=2, max_length=POSITIONS - 2, return_dense=True, return_sparse=True, return_colbert_vecs=True
    )
    return found


def test_dense_vectors_are_those_of_flagembedding(tiny: BgeM3, theirs: dict[str, Any]) -> None:
    ours = np.stack([vectors.dense for vectors in tiny.encode(TEXTS)])
    assert ours.shape == (len(TEXTS), DIMENSIONS)
    np.testing.assert_allclose(ours, theirs["dense_vecs"], atol=1e-6)


def test_lexical_weights_are_those_of_flagembedding(tiny: BgeM3, theirs: dict[str, Any]) -> None:
    for vectors, weights in zip(tiny.encode(TEXTS), theirs["lexical_weights"], strict=True):
        expected = {int(key): float(value) for key, value in weights.items()}
        ours = dict(zip(vectors.sparse_ids.tolist(), vectors.sparse_weights.tolist(), strict=True))
        assert ours == pytest.approx(expected, abs=1e-6)
        assert np.all(np.diff(vectors.sparse_ids.astype(np.int64)) > 0)


def test_some_text_has_lexical_weights(theirs: dict[str, Any]) -> None:
    assert any(theirs["lexical_weights"])


def test_colbert_vectors_are_those_of_flagembedding(tiny: BgeM3, theirs: dict[str, Any]) -> None:
    for vectors, expected in zip(tiny.encode(TEXTS), theirs["colbert_vecs"], strict=True):
        assert vectors.colbert is not None
        np.testing.assert_allclose(vectors.colbert, expected, atol=1e-6)


def test_a_text_has_the_same_vectors_whatever_it_is_encoded_with(tiny: BgeM3) -> None:
    for text, vectors in zip(TEXTS, tiny.encode(TEXTS), strict=True):
        (alone,) = tiny.encode([text])
        assert np.array_equal(alone.dense, vectors.dense)
        assert np.array_equal(alone.sparse_weights, vectors.sparse_weights)


def test_colbert_vectors_are_left_out_unless_asked_for(folder: Path) -> None:
    assert BgeM3(str(folder), "cpu").encode(["a text"])[0].colbert is None


def test_a_text_beyond_the_models_positions_is_cut(tiny: BgeM3) -> None:
    assert tiny.max_tokens == POSITIONS - 2
    short, long = tiny.encode(["a b", "a b " * 100])
    assert not short.truncated
    assert long.truncated
    assert long.colbert is not None
    assert len(long.colbert) == tiny.max_tokens - 1


@pytest.mark.parametrize(
    "missing", ["config.json", "sparse_linear.pt", "colbert_linear.pt", "model.safetensors", "tokenizer.json"]
)
def test_a_folder_without_one_of_its_parts_is_refused(folder: Path, tmp_path: Path, missing: str) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(folder, broken)
    (broken / missing).unlink()
    with pytest.raises(SettingError, match=f"CITELOOM_EMBEDDER_PATH.*{missing}"):
        BgeM3(str(broken))


@pytest.mark.parametrize("config", ["junk", "[]", "{}", '{"hidden_size": 8, "max_position_embeddings": null}'])
def test_a_configuration_that_is_none_is_named(folder: Path, tmp_path: Path, config: str) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(folder, broken)
    (broken / "config.json").write_text(config)
    with pytest.raises(SettingError, match=r"CITELOOM_EMBEDDER_PATH: .*config\.json (has no|cannot be read)"):
        BgeM3(str(broken))


def test_weights_that_are_none_are_refused(folder: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(folder, broken)
    (broken / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(SettingError, match="cannot be loaded"):
        BgeM3(str(broken), "cpu").encode(["a text"])


def test_a_model_is_named_by_its_content(folder: Path, tmp_path: Path) -> None:
    moved = tmp_path / "tiny-m3"
    shutil.copytree(folder, moved)
    assert name_of(str(moved), "auto") == name_of(str(folder), "bf16")
    (moved / "sparse_linear.pt").write_bytes(b"another head")
    assert name_of(str(moved), "auto") != name_of(str(folder), "auto")


def test_int8_is_part_of_the_name(folder: Path) -> None:
    assert name_of(str(folder), "int8") != name_of(str(folder), "auto")
    assert name_of("BAAI/bge-m3", "int8") == "BAAI/bge-m3+int8"
