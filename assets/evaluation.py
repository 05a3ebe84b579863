"""Assets of evaluation: judgements of sections and answers, and every measure."""

from assets.stage_asset import month_asset, month_checks
from pipeline.evaluation.stages import (
    ANSWER_GRADES,
    ANSWER_SCORES,
    CITATION_SUPPORT,
    G_SCORES,
    SCORES,
)

g_scores = month_asset(G_SCORES)
citation_support = month_asset(CITATION_SUPPORT)
answer_grades = month_asset(ANSWER_GRADES)
scores = month_asset(SCORES)
answer_scores = month_asset(ANSWER_SCORES)

g_scores_checks = month_checks(G_SCORES)
