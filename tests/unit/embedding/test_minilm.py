"""MiniLM from its package: golden vectors, sparse weights, and independence of a text's neighbours."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.embedding.choice import make_embedder, model_name
from pipeline.embedding.minilm import MiniLM
from pipeline.errors import SettingError
from pipeline.settings import Settings, load_settings

BEAM = "Beam search keeps the best partial hypotheses while a sentence is translated word by word."

# The first eight of 384 values as sentence-transformers 6.2 gives them for the package's folder, max_seq_length 512.
GOLDEN = {
    BEAM: [-0.00721, 0.03451, 0.02848, 0.01942, 0.06188, 0.00617, 0.02019, 0.00916],
    "Beam search. " * 100: [-0.07549, -0.04794, 0.01036, 0.01291, -0.03505, 0.01101, 0.03612, -0.11105],
}


def _settings(**overrides: object) -> Settings:
    return load_settings(_env_file=None, **overrides)


@pytest.fixture(scope="module")
def minilm() -> MiniLM:
    return MiniLM("cpu")


@pytest.mark.parametrize("text", list(GOLDEN))
def test_dense_vectors_are_those_of_sentence_transformers(minilm: MiniLM, text: str) -> None:
    (vectors,) = minilm.encode([text])
    assert vectors.dense.dtype == np.float32
    assert vectors.dense.shape == (minilm.dimensions,)
    np.testing.assert_allclose(vectors.dense[:8], GOLDEN[text], atol=2e-5)
    assert np.linalg.norm(vectors.dense) == pytest.approx(1.0, abs=1e-6)


def test_a_text_has_the_same_vectors_whatever_it_is_encoded_with(minilm: MiniLM) -> None:
    texts = [BEAM, "short", "a longer text " * 30, "", "Beam search."]
    together = minilm.encode(texts)
    for text, vectors in zip(texts, together, strict=True):
        (alone,) = minilm.encode([text])
        assert np.array_equal(alone.dense, vectors.dense)
        assert (len(vectors.sparse_ids), len(vectors.sparse_weights)) == (0, 0)


def test_a_text_beyond_512_tokens_is_cut(minilm: MiniLM) -> None:
    assert [vectors.truncated for vectors in minilm.encode(["word " * 600, "word"])] == [True, False]


def test_no_text_gives_no_vectors(minilm: MiniLM) -> None:
    assert minilm.encode([]) == []


def test_an_embedder_is_made_once_per_process() -> None:
    assert make_embedder(_settings()) is make_embedder(_settings())
    assert make_embedder(_settings()).name == model_name(_settings())


def test_a_device_that_cannot_be_is_named() -> None:
    with pytest.raises(SettingError, match="CITELOOM_EMBEDDER_DEVICE"):
        MiniLM("tpu").encode(["text"])
