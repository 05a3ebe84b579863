"""A month's run whose steps work on a cluster, told of as if they worked here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.engine import progress
from pipeline.engine.run_stats import read_timings
from pipeline.engine.stage import Stage, Workspace, outcome_of, read_failure, record_failure
from pipeline.errors import TransientFailure
from pipeline.storage.provenance import read_provenance
from resources.cluster import check_cluster

if TYPE_CHECKING:
    from assets.jobs import RunResult, StepNews


def run_on_cluster(
    stages: Sequence[Stage], workspace: Workspace, month: str, home: Path, *, force: bool = False
) -> RunResult:
    """Run some stages on a month, each where the cluster has room; what comes of them is told to who listens.

    Raises SettingError where a setting is not for a cluster, TransientFailure where no cluster answers.
    """
    from assets.jobs import execute_on_cluster
    from pipeline.running.ray_jobs import step_client

    check_cluster(workspace.settings, {stage.name for stage in stages})
    step_client(workspace.settings)  # else it is Dagster that says, at length, that nobody answers
    by_name = {stage.name: stage for stage in stages}

    def tell(news: StepNews) -> None:
        _tell(workspace, by_name[news.asset], month, news)

    return execute_on_cluster(list(by_name), month, home, force=force, told=tell)


def _tell(workspace: Workspace, stage: Stage, month: str, news: StepNews) -> None:
    if news.what == "begun":
        progress.started(stage.name, month)
    elif news.what == "again":
        progress.noted(f"{stage.name} of {month} is begun again: {news.reason}")
    elif news.what == "failed":
        if news.reason:
            record_failure(workspace, stage.name, month, TransientFailure(news.reason))
        progress.failed(stage.name, month, read_failure(workspace, stage.name, month) or "it left no word of why")
    else:
        _tell_made(workspace, stage, month, news)


def _tell_made(workspace: Workspace, stage: Stage, month: str, news: StepNews) -> None:
    written = read_provenance(workspace.root.file(stage.table, month))
    if written is not None:
        timings = [] if news.kept else read_timings(workspace.root, stage.name, month)
        measured = timings[-1].measured if timings else {}
        made = outcome_of(workspace, written, kept=news.kept, seconds=news.seconds, measured=measured)
        progress.finished(made)
