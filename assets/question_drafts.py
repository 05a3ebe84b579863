"""The asset `question_drafts`."""

from __future__ import annotations

from assets.stage_asset import stage_asset
from pipeline.answering.drafting_stage import QUESTION_DRAFTS

question_drafts = stage_asset(
    QUESTION_DRAFTS,
    group="answers",
    description="Questions with gold claims that the LLM proposes for CITELOOM_DRAFT_QUESTIONS papers of the month and "
    "for those of CITELOOM_DRAFT_PAPERS. Asked of nobody until a person accepts them: citeloom questions review.",
    kinds=("parquet", "openai"),
    pool="llm",
)
