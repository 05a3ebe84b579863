"""The assets of question answering: questions, answers, grades and scores."""

from __future__ import annotations

from typing import Any

from assets.stage_asset import StageAsset, writer_settings
from pipeline.answering.question_drafts import QUESTION_DRAFTS
from pipeline.answering.stages import ANSWERS, QUESTIONS
from pipeline.answering.systems import ANSWERING_WRITERS
from pipeline.evaluation.stages import ANSWER_GRADES, ANSWER_SCORES
from pipeline.settings import Settings


def _answer_settings(settings: Settings) -> dict[str, Any]:
    return {**writer_settings(ANSWERING_WRITERS.chosen(settings), settings), "imported": settings.imported_answers}


ANSWERING = (
    StageAsset(
        QUESTIONS,
        "answers",
        "Questions of CITELOOM_QUESTIONS whose newest paper is of the month, with their gold claims.",
    ),
    StageAsset(
        ANSWERS,
        "answers",
        "The answers of each writer of CITELOOM_ANSWER_SYSTEMS (arXivBot, WikiChat, the model alone), and answers made "
        "elsewhere, from the CSV file of CITELOOM_IMPORTED_ANSWERS.",
        kinds=("parquet", "openai"),
        part_settings=_answer_settings,
    ),
    StageAsset(
        ANSWER_GRADES,
        "answers",
        "Every answer claim by claim: is it correct, and which gold claims does the answer hold?",
        kinds=("parquet", "openai"),
    ),
    StageAsset(
        ANSWER_SCORES,
        "answers",
        "Factual and coverage shares of every answer, and how much of what it needed retrieval showed.",
    ),
    StageAsset(
        QUESTION_DRAFTS,
        "answers",
        "Questions with gold claims that the LLM proposes for CITELOOM_DRAFT_QUESTIONS papers of the month and for "
        "those of CITELOOM_DRAFT_PAPERS. Asked of nobody until a person accepts them: citeloom questions review.",
        kinds=("parquet", "openai"),
    ),
)
