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
        assert np.array_equal(alone.sparse_ids, vectors.sparse_ids)
        assert np.array_equal(alone.sparse_weights, vectors.sparse_weights)


def test_sparse_weights_saturate_with_frequency_and_shrink_with_length(minilm: MiniLM) -> None:
    once, twice, long = minilm.encode(["beam", "beam beam", "beam " + "other words " * 200])
    (place,) = np.flatnonzero(long.sparse_ids == once.sparse_ids[0])
    assert once.sparse_weights[0] < twice.sparse_weights[0] < 2 * once.sparse_weights[0]
    assert long.sparse_weights[place] < once.sparse_weights[0]


def test_sparse_ids_ascend_without_punctuation_and_special_tokens(minilm: MiniLM) -> None:
    (vectors,) = minilm.encode(["words, and (more) words. [MASK]"])
    assert vectors.sparse_ids.dtype == np.uint32
    assert vectors.sparse_weights.dtype == np.float32
    assert np.all(np.diff(vectors.sparse_ids.astype(np.int64)) > 0)
    assert len(vectors.sparse_ids) == 3


def test_every_term_of_a_query_weighs_one(minilm: MiniLM) -> None:
    (vectors,) = minilm.encode_queries(["beam beam search"])
    assert vectors.sparse_weights.tolist() == [1.0, 1.0]


def test_a_text_beyond_512_tokens_is_cut_but_its_last_words_stay_in_the_sparse_vector(minilm: MiniLM) -> None:
    long, tail = minilm.encode(["word " * 600 + "photosynthesis", "photosynthesis"])
    assert long.truncated
    assert not tail.truncated
    assert set(tail.sparse_ids) <= set(long.sparse_ids)


def test_no_text_gives_no_vectors(minilm: MiniLM) -> None:
    assert minilm.encode([]) == []


def test_an_embedder_is_made_once_per_process() -> None:
    assert make_embedder(_settings()) is make_embedder(_settings())
    assert make_embedder(_settings()).name == model_name(_settings())


def test_a_device_that_cannot_be_is_named() -> None:
    with pytest.raises(SettingError, match="CITELOOM_EMBEDDER_DEVICE"):
        MiniLM("tpu").encode(["text"])
