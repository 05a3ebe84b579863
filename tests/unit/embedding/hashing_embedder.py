"""An embedder without a model: vectors follow from a text's digest. It counts what it encodes."""

import hashlib
from itertools import islice

import numpy as np
import pytest

from pipeline.embedding.device import pick_precision
from pipeline.embedding.embedder import EngineFacts, SparseRows, VectorBatch
from pipeline.embedding.stages import EMBEDDINGS
from pipeline.errors import SettingError
from tests.workspaces import altered

DIMENSIONS = 8


class HashingEmbedder:
    """The embedder. window: texts that it encodes at once."""

    has_sparse = True
    max_tokens = 512
    dimensions = DIMENSIONS

    def __init__(self, name="hashing", *, window=300):
        self.name = name
        self.encoded = []
        self.closed = False
        self._window = window

    @property
    def last_facts(self):
        """One device."""
        return EngineFacts(("cpu",), "fp32", 1024, 0) if self.encoded else None

    def encode_stream(self, texts):
        """Vectors of every text, a window at a time."""
        stream = iter(texts)
        try:
            while window := list(islice(stream, self._window)):
                self.encoded += window
                yield self._batch(window)
        finally:
            self.closed = True

    def _batch(self, window):
        seeds = [np.frombuffer(hashlib.sha256(text.encode()).digest(), np.uint8) for text in window]
        dense = np.stack([seed[:DIMENSIONS] for seed in seeds]).astype(np.float32)
        words = [np.unique(seed[: int(seed[0]) % 8]).astype(np.uint32) for seed in seeds]
        ids = np.concatenate(words)
        offsets = np.cumsum([0, *map(len, words)], dtype=np.int64)
        tokens = [len(text.split()) for text in window]
        return VectorBatch(
            dense=(dense / np.linalg.norm(dense, axis=1, keepdims=True)).astype(np.float16),
            sparse=SparseRows(offsets, ids, ids.astype(np.float32) + 1),
            truncated=np.array([count > self.max_tokens for count in tokens]),
            tokens=sum(tokens),
        )


def stage_with(embedder):
    """The stage embeddings with this embedder instead of that of the settings."""
    return altered(EMBEDDINGS, embedder=lambda settings: embedder)


def skip_without(precision):
    """Skip the test where an embedder may not compute in this precision on this machine's CPU."""
    try:
        pick_precision(precision, "cpu", ())
    except SettingError:
        pytest.skip(f"this processor has no instructions for {precision}")


MARGINS = {"fp32": 1e-3, "bf16": 0.02, "int8": 0.02}
"""How far a number of a text's vectors may lie from the same number among other texts, or with other
threads: the order of a sum is the processor's and its libraries' choice. In fp32, the last bit of a
number that is stored in 16.
"""
