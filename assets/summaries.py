"""The assets `summaries_<system>`, one for each system."""

from __future__ import annotations

import dagster as dg

from assets.stage_asset import stage_asset
from pipeline.related_work.stages import SUMMARIES

_WRITES = {
    "chatcite": "ChatCite: a section that grows by one reference at a time, the best drafts kept by vote",
    "chatcite_grounded": "our variant of ChatCite, every sentence tied to passages of what it cites",
    "chatcite_no_elements": "ChatCite from summaries in place of key elements (ablation)",
    "chatcite_no_incremental": "ChatCite over all references at once (ablation)",
    "chatcite_no_reflection": "ChatCite without votes (ablation)",
    "few_shot": "the direct prompt with examples of style (baseline)",
    "litllm": "LitLLM: a plan of sentences first (baseline)",
    "zero_shot": "the direct prompt (baseline)",
}


def _asset(system: str) -> dg.AssetsDefinition:
    return stage_asset(
        SUMMARIES[system],
        group="related_work",
        description=f"Related work by {system}: {_WRITES[system]}. Without rows where CITELOOM_SYSTEMS lacks it.",
        kinds=("parquet", "openai"),
        pool="llm",
    )


summaries = [_asset(system) for system in SUMMARIES]
