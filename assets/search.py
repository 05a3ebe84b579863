"""The assets of search: embeddings, the index, and how well each way to search finds cited papers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dagster as dg

from assets.rendering import Interval, intervals, markdown_table
from assets.stage_asset import StageAsset
from pipeline.embedding.stages import EMBEDDINGS
from pipeline.engine.stage import Workspace
from pipeline.evaluation.retrieval.stages import RETRIEVAL_QUERIES, RETRIEVAL_SCORES
from pipeline.index.stages import INDEX_RECEIPTS
from pipeline.report.retrieval import (
    FORM_NAMES,
    METHODS,
    METRIC_NAMES,
    RetrievalScores,
    read_retrieval,
    retrieval_section,
)

_PICTURED_METRICS = ("R@10", "nDCG@10")


def score_details(workspace: Workspace, month: str) -> Mapping[str, Any]:
    """The month's scores as the report's table and as pictures with their intervals; nothing where it has none."""
    scores = read_retrieval(workspace.root, month)
    if not scores.rows:
        return {}
    (grid,) = retrieval_section(scores).grids
    rows = [[group.title, *(cell.plain() for cell in row)] for group in grid.groups for row in group.rows]
    table = markdown_table(["Text searched", *grid.columns], rows)
    pictures = [_picture(scores, metric, month) for metric in _PICTURED_METRICS if metric in scores.metrics]
    return {"scores": dg.MetadataValue.md(table), "pictures": dg.MetadataValue.md("\n\n".join(pictures))}


def _picture(scores: RetrievalScores, metric: str, month: str) -> str:
    groups: dict[str, dict[str, Interval]] = {}
    for form, form_name in FORM_NAMES.items():
        for method in scores.methods(form):
            row = scores.rows[method, form, metric]
            groups.setdefault(form_name, {})[METHODS[method]] = (row["value"], row["low"], row["high"])
    queries = next(iter(scores.rows.values()))["queries"]
    name = METRIC_NAMES[metric]
    return intervals(name, groups, title=f"{name}: {month}: {queries:,} citing sentences, 95 % intervals")


SEARCH = (
    StageAsset(
        EMBEDDINGS,
        "search",
        "Dense vectors of every passage, and of BGE-M3 sparse ones. Unchanged texts keep their vectors, and an "
        "interrupted month continues where it ended.",
        kinds=("parquet", "torch"),
        takes_gpus=True,
    ),
    StageAsset(
        INDEX_RECEIPTS,
        "search",
        "The month's points in the Qdrant collection, audited against the embeddings id by id.",
        kinds=("parquet", "qdrant"),
    ),
    StageAsset(
        RETRIEVAL_QUERIES,
        "evaluation",
        "Sentences that cite papers of the corpus, without their citation markers: what a search is asked to find, "
        "with the answer known and no labeller needed.",
    ),
    StageAsset(
        RETRIEVAL_SCORES,
        "evaluation",
        "How well each way to search finds the papers that sentences cite: dense, lexical, sparse, fused and reranked, "
        "over three forms of text, with intervals.",
        details=score_details,
    ),
)
