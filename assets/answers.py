"""Assets of question answering: questions, and answers by every writer."""

from assets.stage_asset import month_asset, month_checks
from pipeline.answering.stages import ANSWERS, QUESTIONS

questions = month_asset(QUESTIONS)
answers = month_asset(ANSWERS)

answers_checks = month_checks(ANSWERS)
