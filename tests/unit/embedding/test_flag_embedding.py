"""CITELOOM_EMBEDDER_ENGINE=flagembedding: the vectors of our engine, whose parity with
FlagEmbedding's own `encode` test_parity.py has.
"""

import gc
from operator import attrgetter

import numpy as np
import pytest

from benchmarks.vector_parity import TEXTS
from pipeline.embedding.bge_m3 import BgeM3
from pipeline.embedding.choice import model_name
from pipeline.embedding.flag_embedding import FlagBgeM3
from pipeline.embedding.stages import EMBEDDINGS
from pipeline.engine.run import State, run_stage, state
from pipeline.errors import SettingError
from pipeline.settings import load_settings
from tests.unit.index.building import make_workspace, write_month

# FlagEmbedding's import alone takes 10 s and more.
pytestmark = pytest.mark.slow

MONTH = "2024-03"
# Of unlike length, so that a pack of them is padded: a token spelt out, and texts that are cut.
MIXED = [*TEXTS.values(), "a <pad> b", *("a b c " * times for times in (1, 40, 7, 3, 60))]


@pytest.fixture(scope="module")
def theirs(m3):
    return FlagBgeM3(str(m3), "cpu", tokens=600)


def test_flagembeddings_model_lives_as_long_as_the_embedder(m3, monkeypatch):
    from FlagEmbedding import BGEM3FlagModel

    ended = []
    # Its finaliser calls this, which takes the network from the GPU to the CPU.
    monkeypatch.setattr(BGEM3FlagModel, "stop_self_pool", lambda _: ended.append(True))
    embedder = FlagBgeM3(str(m3), "cpu")
    embedder.encode(["a text"])
    gc.collect()
    assert not ended
    del embedder
    gc.collect()
    assert ended


def test_a_stream_has_the_vectors_of_our_engine_in_order(m3, theirs):
    texts = MIXED * 60
    ours = list(BgeM3(str(m3), "cpu", "fp32").encode_stream(texts))
    found = list(theirs.encode_stream(texts))
    assert len(found) > 1
    for one, other in zip(found, ours, strict=True):
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
