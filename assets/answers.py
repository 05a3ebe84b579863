"""The assets `answers_<system>`, one for each, and `answers_imported`."""

from __future__ import annotations

import dagster as dg

from assets.stage_asset import stage_asset
from pipeline.answering.stages import ANSWERS, IMPORTED_ANSWERS

_ANSWERS_BY = {
    "arxivbot": "arXivBot: searches, claims, reflection, another search, an answer from the claims alone",
    "direct": "the model alone (baseline)",
    "wikichat": "WikiChat: what was retrieved, and what the model says and passages bear out (baseline)",
}


def _asset(system: str) -> dg.AssetsDefinition:
    return stage_asset(
        ANSWERS[system],
        group="answers",
        description=f"Answers of {_ANSWERS_BY[system]}. Without rows where CITELOOM_ANSWER_SYSTEMS lacks it.",
        kinds=("parquet", "openai"),
        # Those that search read the index, which belongs to one process at a time where it is embedded.
        pool="llm" if system == "direct" else "qdrant",
    )


answers = [_asset(system) for system in ANSWERS]

answers_imported = stage_asset(
    IMPORTED_ANSWERS,
    group="answers",
    description="Answers made elsewhere, such as on a chat site, from the CSV file of CITELOOM_IMPORTED_ANSWERS.",
)
