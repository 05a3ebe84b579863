"""The one composition root: everything that Dagster sees is wired here and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import dagster as dg

from assets import (
    answer_grades,
    answers,
    arxiv_changes,
    changes,
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
    quality,
    question_drafts,
    questions,
    references,
    related_work_tasks,
    report,
    retrieval_queries,
    retrieval_scores,
    scores,
    stability,
    standing,
    summaries,
)
from assets.executors import chosen_executor
from assets.jobs import RunResult, check_months, execute, find_changes, refresh_corpus
from assets.placement import definition_time_settings
from pipeline.engine.stage import Stage
from pipeline.errors import SettingError
from pipeline.settings import Settings, load_settings
from resources.workspace import WorkspaceResource
from sensors.dump import dump_folder
from sensors.failures import failed_runs
from sensors.refresh import refresh_schedule, refreshed_months
from sensors.standing import hourly_check
from sensors.stuck_runs import stuck_runs

ASSET_MODULES = (
    dump_members, metadata, papers, passages, references, embeddings, index_receipts, retrieval_queries,
    retrieval_scores, questions, related_work_tasks, key_elements, summaries, g_scores, citation_support, stability,
    answers, answer_grades, question_drafts, scores, report, arxiv_changes, changes,
)  # fmt: skip


def build_defs(**overrides: object) -> dg.Definitions:
    """All definitions; `overrides` replace resources by name, for tests and for the command line."""
    return dg.Definitions(
        assets=[*dg.load_assets_from_modules(ASSET_MODULES), standing.months],
        asset_checks=dg.load_asset_checks_from_modules([checks, quality, standing]),
        jobs=[refresh_corpus, find_changes, check_months],
        schedules=[refresh_schedule(_refresh_cron()), hourly_check],
        sensors=[dump_folder, refreshed_months, stuck_runs, failed_runs],
        resources={"workspace": WorkspaceResource(), **overrides},
        executor=chosen_executor(definition_time_settings()),
    )


def _refresh_cron() -> str:
    """When the schedule is due. Where another setting is wrong, each run says so; the UI opens all the same."""
    try:
        return load_settings().refresh_cron
    except SettingError:
        return str(Settings.model_fields["refresh_cron"].default)


def run_in_process(stages: Sequence[Stage], month: str, home: Path, *, force: bool = False) -> RunResult:
    """Run some stages on a month as one Dagster run in this process, recorded in the instance at `home`.

    Services that the run started stay up for the next month: the caller ends
    them with `pipeline.ops.services.release_services`.
    """
    job = build_defs(workspace=WorkspaceResource(keep_services=True)).resolve_job_def(refresh_corpus.name)
    return execute(job, [stage.name for stage in stages], month, home, force=force)


defs = build_defs()
