"""The asset `questions`."""

from __future__ import annotations

from assets.stage_asset import stage_asset
from pipeline.answering.stages import QUESTIONS

questions = stage_asset(
    QUESTIONS,
    group="answers",
    description="Questions of CITELOOM_QUESTIONS whose newest paper is of the month, with their gold claims.",
)
