"""BGE-M3 against FlagEmbedding, text by text: lengths 1 to 8,192, odd signs, any order and any
budget of tokens.

On a random model of BGE-M3's architecture, and on the real one where CITELOOM_TEST_BGE_M3 names its
folder.
"""

import os
import random
from functools import lru_cache
from pathlib import Path
from string import ascii_lowercase

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.vector_parity import EXACT, compare, reference_of
from pipeline.embedding.bge_m3 import BgeM3
from pipeline.embedding.embedder import Vectors
from tests.unit.embedding.tiny_m3 import make_tiny_m3
from tests.unit.index.building import TEXTS

ODD = [
    "",
    "a",
    " ",
    "\n\t",
    "two words",
    "😀 👩‍👩‍👧 smileys",
    "中文字符 測試 日本語の文",
    "\x00\x01\x1b[0m control \x7f\u200b\ufeff signs",
    "</s> <pad> <unk> <mask> spelt out <s>",
    "a <pad> b",
    "é e\u0301 ﬁ Å \u0301 marks",
]
# Letters; each is a token, and there are two more.
LENGTHS = [1, 2, 3, 7, 31, 64, 65, 500, 2_047, 8_189, 8_190, 8_191, 9_000]

pytestmark = pytest.mark.slow


class Pair:
    """A model, and FlagEmbedding with the same."""

    def __init__(self, folder):
        from FlagEmbedding import BGEM3FlagModel

        self.folder = folder
        self.theirs = BGEM3FlagModel(str(folder), use_fp16=False, devices="cpu")

    def expected(self, text):
        return _expected(self, text)

    def ours(self, **options):
        return BgeM3(str(self.folder), "cpu", **{"precision": "fp32"} | options)


@lru_cache(maxsize=256)
def _expected(pair, text):
    return reference_of(pair.theirs, text, 8192)


@pytest.fixture(scope="module")
def random_model(tmp_path_factory):
    return Pair(make_tiny_m3(tmp_path_factory.mktemp("parity") / "m3", positions=8194, scale=8.0))


@pytest.fixture(scope="module", params=["random", "real"])
def pair(request, random_model):
    if request.param == "random":
        return random_model
    folder = os.environ.get("CITELOOM_TEST_BGE_M3")
    if not folder:
        pytest.skip("CITELOOM_TEST_BGE_M3 names no folder of BGE-M3's files")
    return Pair(Path(folder))


def _same(ours, expected):
    assert compare(ours, expected, EXACT).holds


def _texts(batches):
    """The vectors of every text of a stream."""
    found = []
    for batch in batches:
        for text in range(len(batch)):
            dense, truncated = batch.dense[text].astype(np.float32), bool(batch.truncated[text])
            found.append(Vectors(dense, batch.sparse.row(text), truncated))
    return found


def test_odd_texts_and_real_passages_have_flagembeddings_vectors(pair):
    texts = [*ODD, *(f"{TEXTS[0]} " * times for times in (1, 2, 5, 12))]
    ours = pair.ours()
    for found in (ours.encode(texts), _texts(list(ours.encode_stream(texts)))):
        for text, vectors in zip(texts, found, strict=True):
            _same(vectors, pair.expected(text))
    assert sum(len(pair.expected(text).weights) for text in ODD) > 10


def test_texts_of_every_length_have_flagembeddings_vectors(random_model):
    letters = random.Random(1)
    texts = [" ".join(letters.choices(ascii_lowercase, k=length)) for length in LENGTHS]
    found = _texts(list(random_model.ours().encode_stream(texts)))
    for text, vectors in zip(texts, found, strict=True):
        _same(vectors, random_model.expected(text))
    assert [vectors.truncated for vectors in found] == [length > 8_190 for length in LENGTHS]


# FlagEmbedding needs 5 ms a text, so that texts are drawn from few.
WORDS = [*ODD, "a b c", "the quick brown fox", "x " * 40, "lazy dogs " * 9, "zzz"]
SLOW = {"deadline": None, "suppress_health_check": [HealthCheck.function_scoped_fixture]}


@settings(max_examples=60, **SLOW)
@given(texts=st.lists(st.sampled_from(WORDS), min_size=1, max_size=20), tokens=st.integers(1, 400))
def test_order_and_budget_of_tokens_change_nothing(random_model, texts, tokens):
    ours = random_model.ours(tokens=tokens)
    streamed = _texts(list(ours.encode_stream(texts)))
    assert len(streamed) == len(texts)
    for text, found in zip(texts, streamed, strict=True):
        _same(found, random_model.expected(text))


@settings(max_examples=40, **SLOW)
@given(text=st.text(max_size=60))
def test_any_text_has_flagembeddings_vectors(random_model, text):
    (found,) = random_model.ours().encode([text])
    _same(found, random_model.expected(text))
