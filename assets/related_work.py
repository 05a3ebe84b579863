"""The assets of related work: tasks, key elements, and one asset for each writing system."""

from __future__ import annotations

from assets.stage_asset import StageAsset
from pipeline.related_work.stages import KEY_ELEMENTS, SUMMARIES
from pipeline.related_work.tasks import RELATED_WORK_TASKS

_METHODS = {
    "chatcite": "ChatCite: a section that grows by one reference at a time, the best drafts kept by vote",
    "chatcite_grounded": "our variant of ChatCite, every sentence tied to passages of what it cites",
    "chatcite_no_elements": "ChatCite from summaries in place of key elements (ablation)",
    "chatcite_no_incremental": "ChatCite over all references at once (ablation)",
    "chatcite_no_reflection": "ChatCite without votes (ablation)",
    "few_shot": "the direct prompt with examples of style (baseline)",
    "litllm": "LitLLM: a plan of sentences first (baseline)",
    "zero_shot": "the direct prompt (baseline)",
}

RELATED_WORK = (
    StageAsset(
        RELATED_WORK_TASKS,
        "related_work",
        "Papers whose related work cites papers of the corpus; the section is taken out and is the gold text.",
    ),
    StageAsset(
        KEY_ELEMENTS,
        "related_work",
        "Seven key elements of every target and reference (ChatCite, figure 2).",
        kinds=("parquet", "openai"),
    ),
    *(
        StageAsset(
            stage,
            "related_work",
            f"Related work by {system}: {_METHODS[system]}. Without rows where CITELOOM_SYSTEMS lacks it.",
            kinds=("parquet", "openai"),
        )
        for system, stage in SUMMARIES.items()
    ),
)
