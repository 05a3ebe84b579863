"""The assets of operation: what arXiv changed, what a refresh changed, and the checks over all months."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from assets.rendering import markdown_table
from assets.stage_asset import StageAsset
from pipeline import tables
from pipeline.corpus.dump.catalogue import months_in_dump
from pipeline.engine.stage import Workspace
from pipeline.errors import CiteloomError
from pipeline.index import close_indexes
from pipeline.ops.overview import MonthStatus, Overview, freshness, overview
from pipeline.ops.refresh.page import changes_folder
from pipeline.ops.refresh.plan import Changes, find_changes, stages_in_use
from pipeline.ops.refresh.stages import CHANGES, take_baseline
from pipeline.stages import STAGES
from pipeline.storage.provenance import read_provenance
from pipeline.tables import Table
from pipeline.wikipedia.root import refuse_arxiv

# A page of the UI with more is no longer read; the figures count all.
_MOST_ROWS = 100
# What to do stands at the end of a message, which may name two files.
_LONGEST_MESSAGE = 600


@dg.asset(
    group_name="operations",
    kinds={"arxiv"},
    pool="arxiv_api",
    description="What arXiv changed since the last harvest (OAI-PMH), and the months whose pages, metadata, settings "
    "or code are other than their tables were made with. It keeps how these months stand, so that what their runs "
    "change can be told.",
)
def arxiv_changes(
    context: dg.AssetExecutionContext, workspace: dg.ResourceParam[Workspace]
) -> dg.MaterializeResult[None]:
    """A run, not the tick of a schedule, which Dagster ends after a minute: a harvest may take a quarter of an hour."""
    try:
        refuse_arxiv(workspace)
        months = months_in_dump(workspace.settings)
        found = find_changes(workspace, months, stages_in_use(workspace), ask_arxiv=workspace.settings.refresh_harvest)
        take_baseline(workspace, found.months)
    except CiteloomError as error:
        raise dg.Failure(description=str(error), allow_retries=False) from error
    finally:
        close_indexes()  # asking how months stand has opened it, and other processes may want it
    if found.harvest_failure:
        context.log.warning(f"{found.harvest_failure}\nGoing on with what changed here.")
    return dg.MaterializeResult(metadata=_harvest_metadata(found))


def _harvest_metadata(found: Changes) -> dict[str, Any]:
    told: dict[str, Any] = {"months": dg.MetadataValue.json(list(found.months)), "months_due": len(found.months)}
    if found.harvest is not None:
        counts = {name: value for name, value in asdict(found.harvest).items() if isinstance(value, int)}
        told |= {f"harvest/{name}": value for name, value in counts.items()}
        told["harvest/until"] = found.harvest.until
    if found.harvest_failure:
        told["harvest_failure"] = found.harvest_failure
    return told


_CHANGE_COLUMNS = ["arxiv_id", "change", "what", "version_before", "version", "passages_added", "passages_removed"]
# Papers that the UI lists; the page and the table have more.
_MOST_PAPERS = 20


def changes_shown(workspace: Workspace, month: str) -> Mapping[str, Any]:
    """The first papers that changed, what of language models is out of date, and where the page lies."""
    rows = workspace.root.iterate(tables.CHANGES, month, _CHANGE_COLUMNS)
    changed = [list(row.values()) for row in rows if row["change"] != "kept"]
    page = changes_folder(workspace.root) / f"{month}.html"
    shown = {"page": dg.MetadataValue.path(str(page)), "address": dg.MetadataValue.url(page.as_uri())}
    if changed:
        head = [name.replace("_", " ") for name in _CHANGE_COLUMNS]
        shown["papers"] = dg.MetadataValue.md(markdown_table(head, changed[:_MOST_PAPERS]))
    written = read_provenance(workspace.root.file(tables.CHANGES, month))
    stale = written.notes["out_of_date"] if written else {}
    if stale:
        table = markdown_table(("table", "rows"), stale.items())
        shown["no_longer_match_their_inputs"] = dg.MetadataValue.md(table)
    return shown


OPERATIONS = (
    StageAsset(
        CHANGES,
        "operations",
        "What changed since the last refresh: papers new, of another version, withdrawn; passages added, removed, "
        "kept; vectors reused; and which tables of language models no longer match their inputs.",
        after=[stage.name for stage in STAGES],
        details=changes_shown,
    ),
)

months = dg.AssetSpec(
    "months",
    deps=["report"],
    group_name="operations",
    description=(
        "All months of the data root, as the other assets have made them. Nothing is stored for it: its check tells "
        "which months failed or are out of date now, and how to mend each."
    ),
)


@dg.asset_check(asset=months.key, description="No month has failed, and none is out of date.")
def every_month_is_up_to_date(workspace: dg.ResourceParam[Workspace]) -> dg.AssetCheckResult:
    """The months that failed or are out of date now, each with what mends it."""
    found = overview(workspace)
    return dg.AssetCheckResult(
        passed=found.passed,
        severity=dg.AssetCheckSeverity.WARN,
        description=_summary(found),
        metadata={
            "months": found.months,
            "failed": sum(bool(each.failures) for each in found.to_mend),
            "stale": sum(bool(each.stale) and not each.failures for each in found.to_mend),
            "not_begun": found.not_begun,
            **({"to_mend": dg.MetadataValue.md(_table(found.to_mend))} if found.to_mend else {}),
            **({"dump": dg.MetadataValue.text("\n".join(found.dump_problems))} if found.dump_problems else {}),
        },
    )


def _summary(found: Overview) -> str:
    if not found.to_mend:
        told = f"all of {found.months} months stand" + (f", {found.not_begun} not begun" if found.not_begun else "")
        return "; ".join([told, *found.dump_problems])
    named = ", ".join(each.month for each in found.to_mend[:12])
    more = f" and {len(found.to_mend) - 12} more" if len(found.to_mend) > 12 else ""
    return f"to mend: {named}{more}"


def _table(wrong: Iterable[MonthStatus]) -> str:
    """A line for each failure, and for each month that is out of date."""
    rows = [row for each in wrong for row in _rows(each)]
    head = ("month", "stage", "what is wrong", "a rerun")
    told = markdown_table(head, [row[:4] for row in rows[:_MOST_ROWS]], _LONGEST_MESSAGE)
    commands = list(dict.fromkeys(row[4] for row in rows))[:_MOST_ROWS]
    return "\n".join([told, "", "Once what a line names is mended:", "", "```", *commands, "```"])


def _rows(each: MonthStatus) -> Iterable[tuple[str, str, str, str, str]]:
    for failure in each.failures:
        yield each.month, failure.of, failure.message, failure.kind, each.command
    if each.stale and not each.failures:
        stages = f"{len(each.stale)} stages: {', '.join(each.stale)}"
        yield each.month, each.stale[0], f"out of date: {stages}", "makes it anew", each.command


def _fresh(table: Table) -> dg.AssetChecksDefinition:
    @dg.asset_check(
        asset=months.key,
        name=f"newest_month_of_{table.name}_is_there",
        description="The last month that ended CITELOOM_FRESH_DAYS ago or earlier is there; any does, where that is 0.",
    )
    def check(workspace: dg.ResourceParam[Workspace]) -> dg.AssetCheckResult:
        found = freshness(workspace, table, datetime.now(UTC).date())
        told: dict[str, Any] = {"newest": found.newest or "none", "expected": found.expected or "none"}
        if found.written is not None:
            told["written"] = dg.MetadataValue.timestamp(found.written)
        return dg.AssetCheckResult(passed=found.passed, severity=dg.AssetCheckSeverity.WARN, metadata=told)

    return check


papers_are_fresh = _fresh(tables.PAPERS)
index_is_fresh = _fresh(tables.INDEX_RECEIPTS)
