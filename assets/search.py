"""The assets of search: embeddings, the index, and how well each way to search finds cited papers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dagster as dg

from assets.rendering import Interval, intervals, markdown_table
from assets.stage_asset import StageAsset
from pipeline import tables
from pipeline.embedding.stages import EMBEDDINGS
from pipeline.engine.stage import Workspace
from pipeline.evaluation.retrieval.picture import RetrievalView, retrieval_view, with_interval
from pipeline.evaluation.retrieval.stages import RETRIEVAL_QUERIES, RETRIEVAL_SCORES
from pipeline.index.stages import INDEX_RECEIPTS
from pipeline.storage.provenance import read_provenance

_PICTURED_METRICS = ("R@10", "nDCG@10")


def score_details(workspace: Workspace, month: str) -> Mapping[str, Any]:
    """The month's scores as a table and as pictures with their intervals; nothing where it has none."""
    root = workspace.root
    written = read_provenance(root.file(tables.RETRIEVAL_SCORES, month))
    view = retrieval_view(root.rows(tables.RETRIEVAL_SCORES, month), written.notes if written else {})
    if not view.forms:
        return {}
    names = dict(view.metrics)
    pictures = [_picture(view, metric, names[metric], month) for metric in _PICTURED_METRICS if metric in names]
    return {"scores": dg.MetadataValue.md(_table(view)), "pictures": dg.MetadataValue.md("\n\n".join(pictures))}


def _table(view: RetrievalView) -> str:
    rows = [
        (form.name, line.name, *(with_interval(line.values[metric]) for metric, _ in view.metrics))
        for form in view.forms
        for line in form.lines
    ]
    return markdown_table(("text searched", "method", *(name for _, name in view.metrics)), rows)


def _picture(view: RetrievalView, metric: str, name: str, month: str) -> str:
    groups: dict[str, dict[str, Interval]] = {}
    for form in view.forms:
        groups[form.name] = {}
        for line in form.lines:
            mean = line.values[metric]
            groups[form.name][line.name] = (mean.value, mean.low, mean.high)
    title = f"{month}: {view.queries:,} citing sentences, 95 % intervals"
    return intervals(name, groups, title=f"{name}: {title}")


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
