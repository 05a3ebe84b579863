"""The stage `report`: the static pages of a month."""

from __future__ import annotations

from pipeline import tables
from pipeline.engine.stage import Stage
from pipeline.report import publish

REPORT = Stage(
    table=tables.REPORT,
    build=publish.publish,
    upstream=(
        tables.DUMP_MEMBERS,
        tables.METADATA,
        tables.PAPERS,
        tables.PASSAGES,
        tables.REFERENCES,
        tables.EMBEDDINGS,
        tables.INDEX_RECEIPTS,
        tables.RETRIEVAL_QUERIES,
        tables.RETRIEVAL_SCORES,
        tables.RELATED_WORK_TASKS,
        tables.KEY_ELEMENTS,
        tables.SUMMARIES,
        tables.G_SCORES,
        tables.CITATION_SUPPORT,
        tables.STABILITY,
        tables.SCORES,
        tables.QUESTIONS,
        tables.ANSWERS,
        tables.ANSWER_GRADES,
        tables.ANSWER_SCORES,
    ),
    inputs=publish.inputs,
    outputs_exist=publish.outputs_exist,
)
