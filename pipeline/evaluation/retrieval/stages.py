"""The stages `retrieval_queries` and `retrieval_scores`."""

from __future__ import annotations

from pipeline import tables
from pipeline.engine.stage import Stage
from pipeline.evaluation.retrieval import queries, scoring

RETRIEVAL_QUERIES = Stage(
    table=tables.RETRIEVAL_QUERIES,
    build=queries.build_queries,
    upstream=(tables.PASSAGES, tables.REFERENCES),
    settings=("retrieval_queries",),
    inputs=queries.query_inputs,
)

RETRIEVAL_SCORES = Stage(
    table=tables.RETRIEVAL_SCORES,
    build=scoring.build_scores,
    upstream=(tables.PASSAGES, tables.EMBEDDINGS, tables.RETRIEVAL_QUERIES),
    settings=("retrieval_queries", "retrieval_pool", "embedder", "embedded_form", "reranker"),
    version=2,
    inputs=scoring.score_inputs,
    pool="gpu",
)
