"""Services that a process starts on demand and must stop: the embedded model's server and the
embedded index.
"""

from __future__ import annotations

from pipeline.index.opening import close_indexes
from pipeline.llm.embedded import stop_embedded


def release_services() -> None:
    """Stop the embedded LLM server and release the embedded index; safe to call at any time, any
    number of times.
    """
    stop_embedded()
    close_indexes()
