"""The asset `retrieval_queries`."""

from __future__ import annotations

from assets.stage_asset import stage_asset
from pipeline.evaluation.retrieval.stages import RETRIEVAL_QUERIES

retrieval_queries = stage_asset(
    RETRIEVAL_QUERIES,
    group="evaluation",
    description="Sentences that cite papers of the corpus, without their citation markers: what a search is asked to "
    "find, with the answer known and no labeller needed.",
)
