"""CITELOOM_EMBEDDER_ENGINE=flagembedding: FlagEmbedding's vectors, by `encode` and by ours, through
the same tables.
"""

import gc
from operator import attrgetter

import numpy as np
import pytest

from benchmarks.vector_parity import EXACT, TEXTS, compare, reference_of
from pipeline import tables
from pipeline.embedding.bge_m3 import BgeM3
from pipeline.embedding.choice import model_name
from pipeline.embedding.flag_embedding import FlagBgeM3, make_flag_model
from pipeline.embedding.stages import EMBEDDINGS
from pipeline.engine.run import State, run_stage, state
from pipeline.engine.stage import Workspace
from pipeline.errors import SettingError
from pipeline.settings import load_settings
from tests.unit.embedding.tiny_m3 import make_tiny_m3
from tests.unit.index.building import write_month

# FlagEmbedding's import alone takes 10 s and more.
pytestmark = pytest.mark.slow

MONTH = "2024-03"
ENGINES = ("flagembedding", "citeloom")
# Of unlike length, so that a pack of them is padded: a token spelt out, and texts that are cut.
MIXED = [*TEXTS.values(), "a <pad> b", *("a b c " * times for times in (1, 40, 7, 3, 60))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_tiny_m3(tmp_path_factory.mktemp("models") / "tiny-m3", positions=130, scale=8.0)


@pytest.fixture(scope="module")
def theirs(folder):
    return FlagBgeM3(str(folder), "cpu", tokens=600)


def _settings(folder, **overrides):
    chosen = {"embedder": "bge-m3", "embedder_path": str(folder), "embedder_device": "cpu"}
    return load_settings(
        _env_file=None, **{**chosen, "embedder_engine": "flagembedding", **overrides}
    )


def test_a_batch_has_the_vectors_of_flagembeddings_encode(folder, theirs):
    model = make_flag_model(folder, "cpu", "fp32")
    for text, vectors in zip(MIXED, theirs.encode(MIXED), strict=True):
        expected = reference_of(model, text, theirs.max_tokens)
        assert compare(vectors, expected, EXACT).holds
        np.testing.assert_allclose(vectors.dense, expected.dense, atol=1e-5)
        assert vectors.sparse.ids.tolist() == sorted(expected.weights)
    assert any(vectors.truncated for vectors in theirs.encode(MIXED))


def test_flagembeddings_model_lives_as_long_as_the_embedder(folder, monkeypatch):
    from FlagEmbedding import BGEM3FlagModel

    ended = []
    # Its finaliser calls this, which takes the network from the GPU to the CPU.
    monkeypatch.setattr(BGEM3FlagModel, "stop_self_pool", lambda _: ended.append(True))
    embedder = FlagBgeM3(str(folder), "cpu")
    embedder.encode(["a text"])
    gc.collect()
    assert not ended
    del embedder
    gc.collect()
    assert ended


def test_a_stream_has_the_vectors_of_our_engine_in_order(folder, theirs):
    texts = MIXED * 60
    ours = list(BgeM3(str(folder), "cpu", "fp32").encode_stream(texts))
    found = list(theirs.encode_stream(texts))
    assert len(found) > 1
    for one, other in zip(found, ours, strict=True):
        np.testing.assert_allclose(one.dense, other.dense, atol=2e-3)
        for equal in ("sparse.offsets", "sparse.ids", "truncated"):
            np.testing.assert_array_equal(*map(attrgetter(equal), (one, other)))
        np.testing.assert_allclose(one.sparse.weights, other.sparse.weights, atol=1e-4)
        assert one.tokens == other.tokens


def test_questions_are_encoded_by_it_too(folder):
    theirs, ours = FlagBgeM3(str(folder), "cpu"), BgeM3(str(folder), "cpu", "fp32")
    questions = [model.encode_queries(["which cat is lazy"])[0] for model in (theirs, ours)]
    np.testing.assert_allclose(questions[0].dense, questions[1].dense, atol=1e-5)


def test_the_engine_computes_bge_m3_alone_and_in_float32_on_a_cpu(folder):
    with pytest.raises(SettingError, match="CITELOOM_EMBEDDER_PRECISION"):
        FlagBgeM3(str(folder), "cpu", "bf16").encode(["a text"])
    with pytest.raises(
        SettingError, match="CITELOOM_EMBEDDER_ENGINE: flagembedding computes BGE-M3 alone"
    ):
        load_settings(_env_file=None, embedder_engine="flagembedding")


def test_a_month_of_either_engine_is_a_month_of_the_model(folder, tmp_path):
    theirs, ours = (
        Workspace(_settings(folder, embedder_engine=engine, data=tmp_path)) for engine in ENGINES
    )
    write_month(theirs)
    outcome = run_stage(EMBEDDINGS, theirs, MONTH)
    assert outcome.measured["engine"] == "flagembedding"
    assert state(EMBEDDINGS, ours, MONTH) is State.DONE
    assert model_name(theirs.settings) == model_name(ours.settings)
    rows = theirs.root.rows(tables.EMBEDDINGS, MONTH)
    assert run_stage(EMBEDDINGS, ours, MONTH, force=True).measured["engine"] == "citeloom"
    for one, other in zip(rows, ours.root.rows(tables.EMBEDDINGS, MONTH), strict=True):
        assert one["sparse_ids"] == other["sparse_ids"]
        np.testing.assert_allclose(one["dense"], other["dense"], atol=2e-3)
