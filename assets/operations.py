"""The assets of operation: what arXiv changed, what a refresh changed, and the checks over all months."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from assets import OWNER_METADATA, OWNERS
from assets.partitions import offer_months
from assets.rendering import markdown_table, report_page
from assets.stage_asset import StageAsset
from pipeline import tables
from pipeline.corpus.dump.catalogue import months_in_dump
from pipeline.engine.stage import Workspace
from pipeline.errors import CiteloomError
from pipeline.index import close_indexes
from pipeline.ops.overview import MonthStatus, Overview, freshness, overview
from pipeline.ops.refresh.plan import Changes, find_changes, stages_in_use
from pipeline.ops.refresh.stages import CHANGES, take_baseline
from pipeline.storage.provenance import read_provenance
from pipeline.tables import Table
from pipeline.wikipedia.root import refuse_arxiv

# A page of the UI with more is no longer read; the figures count all.
_MOST_ROWS = 100
# What to do is at the end of a message, which may name two files.
_LONGEST_MESSAGE = 600


@dg.asset(
    group_name="operations",
    kinds={"arxiv"},
    owners=OWNERS,
    tags={"citeloom/resource": "arxiv_api"},
    pool="arxiv_api",
    description="What arXiv changed since the last harvest (OAI-PMH), and the months whose pages, metadata, settings "
    "or code differ from those their tables were made with. It records the present state of these months, so that a "
    "refresh can report what their runs change.",
)
def arxiv_changes(
    context: dg.AssetExecutionContext, workspace: dg.ResourceParam[Workspace]
) -> dg.MaterializeResult[None]:
    """A run, not the tick of a schedule, which Dagster ends after a minute: a harvest may take a quarter of an hour."""
    try:
        refuse_arxiv(workspace)
        in_dump = months_in_dump(workspace.settings)
        offer_months(context.instance, in_dump)
        ask_arxiv = workspace.settings.refresh_harvest
        changes = find_changes(workspace, in_dump, stages_in_use(workspace), ask_arxiv=ask_arxiv)
        take_baseline(workspace, changes.months)
    except CiteloomError as error:
        raise dg.Failure(description=str(error), allow_retries=False) from error
    finally:
        close_indexes()  # asking for the state of months has opened it, and other processes may need it
    if changes.harvest_failure:
        context.log.warning(f"{changes.harvest_failure}\nContinuing with what changed in the dump.")
    return dg.MaterializeResult(metadata=_harvest_metadata(changes))


def _harvest_metadata(changes: Changes) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "months": dg.MetadataValue.json(list(changes.months)),
        "months_due": len(changes.months),
    }
    if changes.harvest is not None:
        counts = {name: value for name, value in asdict(changes.harvest).items() if isinstance(value, int)}
        metadata |= {f"harvest/{name}": value for name, value in counts.items()}
        metadata["harvest/until"] = changes.harvest.until
    if changes.harvest_failure:
        metadata["harvest_failure"] = changes.harvest_failure
    return metadata


_CHANGE_COLUMNS = ["arxiv_id", "change", "what", "version_before", "version", "passages_added", "passages_removed"]
# Papers that the UI lists; the page and the table have more.
_MOST_PAPERS = 20


def change_details(workspace: Workspace, month: str) -> Mapping[str, Any]:
    """The first papers that changed, the tables of language models that are out of date, and where the page lies."""
    rows = workspace.root.iterate(tables.CHANGES, month, _CHANGE_COLUMNS)
    changed = [list(row.values()) for row in rows if row["change"] != "kept"]
    details: dict[str, Any] = {**report_page(workspace, f"changes/{month}.html")}
    if changed:
        head = [name.replace("_", " ") for name in _CHANGE_COLUMNS]
        details["papers"] = dg.MetadataValue.md(markdown_table(head, changed[:_MOST_PAPERS]))
    written = read_provenance(workspace.root.file(tables.CHANGES, month))
    stale = written.notes["out_of_date"] if written else {}
    if stale:
        table = markdown_table(("table", "rows"), stale.items())
        details["no_longer_match_their_inputs"] = dg.MetadataValue.md(table)
    return details


OPERATIONS = (
    StageAsset(
        CHANGES,
        "operations",
        "What changed since the last refresh: papers new, of another version, withdrawn; passages added, removed, "
        "kept; vectors reused; and which tables of language models no longer match their inputs.",
        # The last stages of each part of a refresh, since it lists what they leave out of date.
        after=("citations", "retrieval_scores", "questions", "related_work_tasks", "question_drafts", "report"),
        details=change_details,
    ),
)

months = dg.AssetSpec(
    "months",
    deps=["report"],
    group_name="operations",
    kinds={"parquet"},
    owners=OWNERS,
    tags={"citeloom/resource": "cpu"},
    description=(
        "All months of the data root, as the other assets have made them. Nothing is stored for it: its check reports "
        "which months failed or are out of date, and how to repair each."
    ),
)


@dg.asset_check(asset=months.key, description="No month has failed, and none is out of date.", metadata=OWNER_METADATA)
def every_month_is_up_to_date(workspace: dg.ResourceParam[Workspace]) -> dg.AssetCheckResult:
    """The months that failed or are out of date now, each with the command that repairs it."""
    state = overview(workspace)
    metadata: dict[str, Any] = {
        "months": state.months,
        "failed": sum(bool(month.failures) for month in state.to_repair),
        "stale": sum(bool(month.stale) and not month.failures for month in state.to_repair),
        "not_begun": state.not_begun,
    }
    if state.to_repair:
        metadata["to_repair"] = dg.MetadataValue.md(_table(state.to_repair))
    if state.dump_problems:
        metadata["dump"] = dg.MetadataValue.text("\n".join(state.dump_problems))
    return dg.AssetCheckResult(
        passed=state.passed, severity=dg.AssetCheckSeverity.WARN, description=_summary(state), metadata=metadata
    )


def _summary(state: Overview) -> str:
    if not state.to_repair:
        not_begun = f", {state.not_begun} not begun" if state.not_begun else ""
        return "; ".join([f"none of {state.months} months needs repair{not_begun}", *state.dump_problems])
    names = ", ".join(month.month for month in state.to_repair[:12])
    more = f" and {len(state.to_repair) - 12} more" if len(state.to_repair) > 12 else ""
    return f"to repair: {names}{more}"


def _table(to_repair: Iterable[MonthStatus]) -> str:
    """A line for each failure, and for each month that is out of date."""
    rows = [row for month in to_repair for row in _rows(month)]
    head = ("month", "stage", "what is wrong", "a rerun")
    table = markdown_table(head, [row[:4] for row in rows[:_MOST_ROWS]], _LONGEST_MESSAGE)
    commands = list(dict.fromkeys(row[4] for row in rows))[:_MOST_ROWS]
    return "\n".join([table, "", "Once the cause that a line names is fixed:", "", "```", *commands, "```"])


def _rows(status: MonthStatus) -> Iterable[tuple[str, str, str, str, str]]:
    """Month, stage, what is wrong, what a rerun does, and the command."""
    for failure in status.failures:
        yield status.month, failure.of, failure.message, failure.kind, status.command
    if status.stale and not status.failures:
        stages = f"{len(status.stale)} stages: {', '.join(status.stale)}"
        yield status.month, status.stale[0], f"out of date: {stages}", "computes it again", status.command


def _freshness_check(table: Table) -> dg.AssetChecksDefinition:
    @dg.asset_check(
        asset=months.key,
        name=f"newest_month_of_{table.name}_exists",
        description="The last month that ended CITELOOM_FRESH_DAYS ago or earlier exists; with 0, none is expected.",
        metadata=OWNER_METADATA,
    )
    def check(workspace: dg.ResourceParam[Workspace]) -> dg.AssetCheckResult:
        newest = freshness(workspace, table, datetime.now(UTC).date())
        metadata: dict[str, Any] = {"newest": newest.newest or "none", "expected": newest.expected or "none"}
        if newest.written is not None:
            metadata["written"] = dg.MetadataValue.timestamp(newest.written)
        return dg.AssetCheckResult(passed=newest.passed, severity=dg.AssetCheckSeverity.WARN, metadata=metadata)

    return check


papers_are_fresh = _freshness_check(tables.PAPERS)
index_is_fresh = _freshness_check(tables.INDEX_RECEIPTS)
