"""Encode queries in a process of their own.

An encoding by numpy multiplies 36 matrices and releases the interpreter lock for each. Beside threads that render pages
it waits up to 5 ms every time to get the lock back.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from concurrent.futures import Executor
from concurrent.futures.process import BrokenProcessPool
from functools import cache

from loky import get_reusable_executor

from pipeline.embedding.embedder import Embedder, Vectors
from pipeline.embedding.minilm import MiniLM

# The process ends after this time without a query, also where the server was killed.
_IDLE_SECONDS = 300


def encode_in_process(embedder: Embedder, queries: Sequence[str]) -> list[Vectors]:
    """The vectors of queries, as `Embedder.encode_queries` returns them.

    Only MiniLM is encoded in the other process: torch, which encodes the other models, releases the lock for longer.
    A query whose process dies is encoded here; the next one gets a new process.
    """
    if not isinstance(embedder, MiniLM):
        return embedder.encode_queries(queries)
    try:
        vectors: list[Vectors] = encoder_process().submit(_encode, list(queries)).result()
    except BrokenProcessPool:
        return embedder.encode_queries(queries)
    return vectors


def encoder_process() -> Executor:
    """An executor of the one process, which is started where there is none."""
    executor: Executor = get_reusable_executor(
        max_workers=1, timeout=_IDLE_SECONDS, initializer=_leave_ctrl_c_to_the_server
    )
    return executor


def _leave_ctrl_c_to_the_server() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _encode(queries: Sequence[str]) -> list[Vectors]:
    return _minilm().encode_queries(queries)


@cache
def _minilm() -> MiniLM:
    return MiniLM()
