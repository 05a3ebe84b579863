"""Services that a process starts on demand and stops: the embedded model and index."""

from __future__ import annotations

from pipeline.index.opening import close_indexes
from pipeline.llm.embedded import stop_embedded


def release_services() -> None:
    """Stop the embedded LLM server and release the embedded index; idempotent."""
    stop_embedded()
    close_indexes()
