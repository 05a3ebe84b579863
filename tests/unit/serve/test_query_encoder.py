"""Queries that are encoded in a process of their own: the same vectors, also after that process died."""

from __future__ import annotations

import os
import signal

from pipeline.embedding.minilm import MiniLM
from pipeline.serve.query_encoder import encode_in_process, encoder_process

QUERIES = ["rank fusion", "how does retrieval help a language model?"]


def encode() -> list[list[float]]:
    return [vectors.dense.tolist() for vectors in encode_in_process(MiniLM(), QUERIES)]


def test_vectors_are_those_of_the_embedder_and_outlive_a_kill_of_the_process() -> None:
    expected = [vectors.dense.tolist() for vectors in MiniLM().encode_queries(QUERIES)]
    assert encode() == expected
    first = encoder_process().submit(os.getpid).result()
    assert first != os.getpid()
    os.kill(first, signal.SIGKILL)
    assert encode() == expected  # encoded here, if the dead process had been given the queries
    assert encode() == expected
    assert encoder_process().submit(os.getpid).result() not in (first, os.getpid())
