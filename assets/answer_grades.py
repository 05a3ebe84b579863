"""The assets `answer_grades` and `answer_scores`."""

from __future__ import annotations

from assets.stage_asset import stage_asset
from pipeline.evaluation.stages import ANSWER_GRADES, ANSWER_SCORES

answer_grades = stage_asset(
    ANSWER_GRADES,
    group="answers",
    description="Every answer claim by claim: is it correct, and which gold claims does the answer hold?",
    kinds=("parquet", "openai"),
    pool="llm",
)

answer_scores = stage_asset(
    ANSWER_SCORES,
    group="answers",
    description="Factual and coverage shares of every answer, and how much of what it needed retrieval showed.",
)
