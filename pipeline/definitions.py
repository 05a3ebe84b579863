"""The one composition root: everything that Dagster sees is wired here and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import dagster as dg

from assets import (
    answer_grades,
    answers,
    checks,
    citation_support,
    dump_members,
    embeddings,
    g_scores,
    index_receipts,
    key_elements,
    metadata,
    papers,
    passages,
    question_drafts,
    questions,
    references,
    related_work_tasks,
    report,
    retrieval_queries,
    retrieval_scores,
    scores,
    stability,
    summaries,
)
from pipeline.jobs import RunResult, execute, refresh_corpus
from pipeline.stages import Stage
from resources.workspace import WorkspaceResource
from sensors.dump import dump_folder
from sensors.refresh import newest_month

ASSET_MODULES = (
    dump_members, metadata, papers, passages, references, embeddings, index_receipts, retrieval_queries,
    retrieval_scores, questions, related_work_tasks, key_elements, summaries, g_scores, citation_support, stability,
    answers, answer_grades, question_drafts, scores, report,
)  # fmt: skip


def build_defs(**overrides: object) -> dg.Definitions:
    """All definitions; `overrides` replace resources by name, for tests and for the command line."""
    return dg.Definitions(
        assets=dg.load_assets_from_modules(ASSET_MODULES),
        asset_checks=dg.load_asset_checks_from_modules([checks]),
        jobs=[refresh_corpus],
        schedules=[newest_month],
        sensors=[dump_folder],
        resources={"workspace": WorkspaceResource(), **overrides},
        executor=dg.in_process_executor,
    )


def run_in_process(stages: Sequence[Stage], month: str, home: Path, *, force: bool = False) -> RunResult:
    """Run some stages on a month as one Dagster run in this process, recorded in the instance at `home`.

    Services that the run started stay up for the next month: the caller ends
    them with `pipeline.services.release_services`.
    """
    job = build_defs(workspace=WorkspaceResource(keep_services=True)).resolve_job_def(refresh_corpus.name)
    return execute(job, [stage.name for stage in stages], month, home, force=force)


defs = build_defs()
