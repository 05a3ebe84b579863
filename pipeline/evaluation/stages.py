"""The stages `scores` and `report`. Not here: measures (`rouge`, `g_score`) and pages (`report`).

`llm_url` is not among the settings of `scores`, as it is not among those of `summaries`: a judgement belongs to a
model's name, and the same model at another address changes no row.
"""

from __future__ import annotations

from pipeline import tables
from pipeline.evaluation import publish, scoring
from pipeline.stages import Stage

SCORES = Stage(
    table=tables.SCORES,
    build=scoring.score,
    upstream=(tables.RELATED_WORK_TASKS, tables.SUMMARIES),
    settings=("llm_model", "llm_context"),
    inputs=scoring.inputs,
)

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
        tables.SCORES,
    ),
    inputs=publish.inputs,
    still_holds=publish.still_holds,
)
