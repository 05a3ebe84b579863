"""Services that a process starts on demand and stops: the bundled model and index."""

from __future__ import annotations

from pipeline.index.opening import close_indexes
from pipeline.llm.bundled import stop_bundled


def release_services() -> None:
    """Stop the bundled LLM server and release the in-process index; idempotent."""
    stop_bundled()
    close_indexes()
