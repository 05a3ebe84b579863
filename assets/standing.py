"""The checks that look at all months: which failed or are out of date, and whether the newest is there.

They are no part of a month's run, of which a backfill has hundreds, but of a job of their own, `check_months`.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from assets.shown import markdown_table
from pipeline import tables
from pipeline.engine.stage import Workspace
from pipeline.ops.overview import Overview, Standing, freshness, overview
from pipeline.tables import Table

# A page of the UI with more is no longer read; the numbers count all.
_MOST_SHOWN = 100
# What to do stands at the end of a message, which may name two files.
_LONGEST_MESSAGE = 600

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
def every_month_stands(workspace: dg.ResourceParam[Workspace]) -> dg.AssetCheckResult:
    """The months that failed or are out of date now, each with what mends it."""
    found = overview(workspace)
    return dg.AssetCheckResult(
        passed=found.holds,
        severity=dg.AssetCheckSeverity.WARN,
        description=_summary(found),
        metadata={
            "months": found.months,
            "failed": sum(bool(each.failed) for each in found.wrong),
            "stale": sum(bool(each.stale) and not each.failed for each in found.wrong),
            "not_begun": found.not_begun,
            **({"to_mend": dg.MetadataValue.md(_table(found.wrong))} if found.wrong else {}),
            **({"dump": dg.MetadataValue.text("\n".join(found.trouble))} if found.trouble else {}),
        },
    )


def _summary(found: Overview) -> str:
    if not found.wrong:
        told = f"all of {found.months} months stand" + (f", {found.not_begun} not begun" if found.not_begun else "")
        return "; ".join([told, *found.trouble])
    named = ", ".join(each.month for each in found.wrong[:12])
    more = f" and {len(found.wrong) - 12} more" if len(found.wrong) > 12 else ""
    return f"to mend: {named}{more}"


def _table(wrong: Iterable[Standing]) -> str:
    """A line for each failure, and for each month that is out of date."""
    rows = [row for each in wrong for row in _rows(each)]
    head = ("month", "stage", "what is wrong", "a rerun")
    told = markdown_table(head, [row[:4] for row in rows[:_MOST_SHOWN]], _LONGEST_MESSAGE)
    commands = list(dict.fromkeys(row[4] for row in rows))[:_MOST_SHOWN]
    return "\n".join([told, "", "Once what a line names is mended:", "", "```", *commands, "```"])


def _rows(each: Standing) -> Iterable[tuple[str, str, str, str, str]]:
    for failure in each.failed:
        yield each.month, failure.of, failure.message, failure.kind, each.mend
    if each.stale and not each.failed:
        stages = f"{len(each.stale)} stages: {', '.join(each.stale)}"
        yield each.month, each.stale[0], f"out of date: {stages}", "makes it anew", each.mend


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
        return dg.AssetCheckResult(passed=found.holds, severity=dg.AssetCheckSeverity.WARN, metadata=told)

    return check


papers_are_fresh = _fresh(tables.PAPERS)
index_is_fresh = _fresh(tables.INDEX_RECEIPTS)
