"""Settings that keep which of them were read: what a stage reads must be able to put its month out
of date.
"""

from __future__ import annotations

from typing import Any

from pipeline.settings import Settings

READ: set[str] = set()
"""The fields that were read since it was cleared."""


class Read(Settings):
    """Settings that keep which of them were read."""

    def __getattribute__(self, name: str) -> Any:
        if name in Settings.model_fields:
            READ.add(name)
        return super().__getattribute__(name)


# Where a model is, how fast it is asked, and what it may cost; where steps work, by which the cache
# keeps its journal: none of it changes a row.
NO_ROW = {
    "data", "local", "llm_url", "llm_api_key", "llm_concurrency", "llm_timeout", "llm_price",
    "models", "llm_budget_calls", "llm_budget_tokens", "llm_budget_money", "llm_budget_name",
    "executor", "embedder_device", "embedder_precision", "embedder_tokens",
}  # fmt: skip
