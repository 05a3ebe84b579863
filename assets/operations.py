"""Assets of operation: arXiv's changes, a refresh's summary, checks over all months."""

import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, date, datetime, timedelta
from typing import Any

import dagster as dg

from assets import OWNER_METADATA, OWNERS
from assets.checks import run_in_process
from assets.placement import failing_without_retry, final_failure
from assets.rendering import markdown_table
from pipeline import tables
from pipeline.corpus.dump.catalogue import months_in_dump
from pipeline.engine.failures import RUN, all_failures, read_failure
from pipeline.engine.finish import finish_stages, unfinished_stages
from pipeline.engine.stage import Workspace
from pipeline.engine.status import month_status
from pipeline.errors import CiteloomError, TransientFailure
from pipeline.ops.refresh.plan import (
    downstream,
    due_by_month,
    find_changes,
    stages_in_use,
)
from pipeline.ops.refresh.summary import (
    RefreshSummary,
    as_json,
    last_refresh,
    months_of_refresh,
    record_keys,
    summarize,
    summary_file,
)
from pipeline.ops.run_months import months_of_status
from pipeline.stages import STAGES
from pipeline.tables import Table

# A page of the UI with more is no longer read; the figures count all.
_MOST_ROWS = 100
# What to do is at the end of a message, which may name two files.
_LONGEST_MESSAGE = 600
# The index may be in use by a search, a server may restart.
_FINISH_TRIES, _SECONDS_BETWEEN_TRIES = 10, 60.0


@dg.asset(kinds={"arxiv"}, owners=OWNERS, tags={"citeloom/resource": "arxiv_api"}, pool="arxiv_api")
def arxiv_changes(
    context: dg.AssetExecutionContext, workspace: dg.ResourceParam[Workspace]
) -> dg.MaterializeResult[None]:
    """What arXiv changed since the last harvest (OAI-PMH), and the months whose pages, metadata,
    settings or code differ from those their tables were made with. Their keys are recorded, for the
    summary of the refresh.
    """
    # A run, not the tick of a schedule, which Dagster ends after a minute: a harvest may take a
    # quarter of an hour.
    with failing_without_retry():
        plan = find_changes(
            workspace,
            months_in_dump(workspace.settings),
            stages_in_use(workspace),
            ask_arxiv=workspace.settings.refresh_harvest,
        )
        record_keys(workspace, plan.months)
    if plan.harvest_failure:
        context.log.warning(f"{plan.harvest_failure}\nContinuing with what changed in the dump.")
    metadata: dict[str, Any] = {
        "months": dg.MetadataValue.json(list(plan.months)),
        "months_due": len(plan.months),
    }
    if plan.harvest is not None:
        for name, value in asdict(plan.harvest).items():
            if isinstance(value, int) or name == "until":
                metadata[f"harvest/{name}"] = value
    if plan.harvest_failure:
        metadata["harvest_failure"] = plan.harvest_failure
    return dg.MaterializeResult(metadata=metadata)


@dg.asset(kinds={"json"}, owners=OWNERS, tags={"citeloom/resource": "cpu"})
def refresh_summary(workspace: dg.ResourceParam[Workspace]) -> dg.MaterializeResult[None]:
    """The summary of the last refresh: papers new, revised, withdrawn; passages added, changed,
    removed; vectors made; failures, and which tables of language models no longer match their
    inputs.
    """
    # Made once the runs of a refresh have ended, and again where one ends later.
    with failing_without_retry():
        months, _ = months_of_status(workspace, "all")
        stages, name = stages_in_use(workspace), last_refresh(workspace.root)
        due = due_by_month(workspace, months, stages)
        deferred = {
            month: downstream(workspace, month, due_stages, redo=False).deferred
            for month, due_stages in due.items()
        }
        run = set(months_of_refresh(workspace.root, name))
        failures = [
            (failure.stage, failure.month, failure.message)
            for failure in all_failures(workspace.root)
            if failure.month in run
        ]
        summary = summarize(workspace, name, deferred, failures)
    return dg.MaterializeResult(metadata=summary_metadata(workspace, summary))


def summary_metadata(workspace: Workspace, summary: RefreshSummary) -> dict[str, Any]:
    """The counts under names that the UI plots, the summary's lists, and its file."""
    metadata: dict[str, Any] = {**asdict(summary.changes), "months_run": len(summary.months)}
    for name, value in as_json(summary).items():
        if isinstance(value, dict | list):
            metadata[name] = dg.MetadataValue.json(value)
    if summary.started:
        metadata["summary"] = dg.MetadataValue.path(
            str(summary_file(workspace.root, summary.started))
        )
    return metadata


@dg.asset(deps=["report"], kinds={"html"}, owners=OWNERS, tags={"citeloom/resource": "cpu"})
def months(workspace: dg.ResourceParam[Workspace]) -> dg.MaterializeResult[None]:
    """What all months of the data root share: the overall report page. A sensor makes it once the
    runs of the months have ended. Its check reports which months failed or are out of date, and how
    to repair each.
    """
    due = unfinished_stages(workspace, STAGES)
    errors = finish_stages(workspace, STAGES)
    for error in errors:
        if isinstance(error, TransientFailure):
            raise dg.RetryRequested(_FINISH_TRIES, _SECONDS_BETWEEN_TRIES) from error
    if errors:
        raise final_failure("\n".join(map(str, errors))) from errors[0]
    return dg.MaterializeResult(metadata={"finished": ", ".join(due) or "nothing was due"})


@dg.asset_check(asset=months, metadata=OWNER_METADATA)
def every_month_is_up_to_date(workspace: dg.ResourceParam[Workspace]) -> dg.AssetCheckResult:
    """No month has failed, and none is out of date."""
    # 424 months take 8 s of processor time at first, and 1.1 s once their footers are cached.
    try:
        selected, problem = months_of_status(workspace, "all")
    except CiteloomError as error:
        selected, problem = [], str(error)
    enabled = [stage for stage in STAGES if not stage.disabled_reason(workspace.settings)]
    to_repair: dict[str, list[dict[str, Any]]] = {}
    with workspace.read_cache():
        for month in selected:
            failure = read_failure(workspace, RUN, month)
            rows = [{"stage": RUN, "state": "failed", "failure": failure}] if failure else []
            rows += month_status(enabled, workspace, month)
            if broken := [row for row in rows if row["state"] in ("failed", "stale")]:
                to_repair[month] = broken
    failed = sum(any(row["failure"] for row in of_month) for of_month in to_repair.values())
    metadata: dict[str, Any] = {
        "months": len(selected),
        "failed": failed,
        "stale": len(to_repair) - failed,
    }
    if to_repair:
        recorded = {failure.month for failure in all_failures(workspace.root)}
        metadata["to_repair"] = dg.MetadataValue.md(_describe_repairs(to_repair, recorded))
    if problem:
        metadata["dump"] = problem
    return dg.AssetCheckResult(
        passed=not to_repair and not problem,
        severity=dg.AssetCheckSeverity.WARN,
        description=f"to repair: {', '.join(to_repair) or 'no month'}",
        metadata=metadata,
    )


def _describe_repairs(
    to_repair: Mapping[str, Sequence[Mapping[str, Any]]], recorded: Collection[str]
) -> str:
    """A table of what is wrong, and the command for each month.

    recorded: the months with a recorded failure. `run --failed` runs no others, such as those with
    a damaged table.
    """
    table, commands = [], []
    for month, rows in to_repair.items():
        table += [(month, row["stage"], row["state"], row["failure"] or "") for row in rows]
        if month in recorded:
            commands.append(f"citeloom run --failed --months {month}")
        else:
            stages = ",".join(row["stage"] for row in rows)
            commands.append(f"citeloom run --months {month} --select {stages}")
    head = ("month", "stage", "state", "failure")
    return "\n".join(
        [
            markdown_table(head, table[:_MOST_ROWS], _LONGEST_MESSAGE),
            "\nOnce the cause that a line names is fixed:\n\n```",
            *commands[:_MOST_ROWS],
            "```",
        ]
    )


def _freshness_check(table: Table) -> dg.AssetChecksDefinition:
    """Not Dagster's own check of freshness by partition, which takes only partitions that are time
    windows.
    """

    @dg.asset_check(
        asset=months,
        name=f"newest_month_of_{table.name}_exists",
        description=(
            "The last month that ended CITELOOM_FRESH_DAYS ago or earlier exists; with 0, none is"
            " expected."
        ),
        metadata=OWNER_METADATA,
    )
    def check(workspace: dg.ResourceParam[Workspace]) -> dg.AssetCheckResult:
        newest = max(workspace.root.months(table), default="")
        expected = expected_month(datetime.now(UTC).date(), workspace.settings.fresh_days)
        return dg.AssetCheckResult(
            passed=newest >= expected,
            severity=dg.AssetCheckSeverity.WARN,
            metadata={"newest": newest or "none", "expected": expected or "none"},
        )

    return check


def expected_month(today: date, fresh_days: int) -> str:
    """The last month, YYYY-MM, that had ended this many days ago; empty where the number is 0."""
    first_of_month = (today - timedelta(days=fresh_days)).replace(day=1)
    return f"{first_of_month - timedelta(days=1):%Y-%m}" if fresh_days else ""


papers_are_fresh = _freshness_check(tables.PAPERS)
index_is_fresh = _freshness_check(tables.INDEX_RECEIPTS)


def check_in_process(instance: dg.DagsterInstance, workspace: Workspace) -> None:
    """Evaluate the checks of `months` in this process, as the job `check_months` does."""
    checks = dg.load_asset_checks_from_modules([sys.modules[__name__]])
    run_in_process(instance, "check_months", checks, workspace=workspace)
