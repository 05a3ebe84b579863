"""Checks of a month's data against the months around it, a warning each."""

import warnings
from collections.abc import Sequence
from typing import Any

import dagster as dg

from assets.partitions import MONTHS
from assets.shown import markdown_table
from assets.stage_asset import retry_of_lost_steps
from pipeline.engine.stage import Workspace
from pipeline.evaluation.quality import Finding, findings
from pipeline.tables import EMBEDDINGS, INDEX_RECEIPTS, PAPERS, PASSAGES, Table


def _check(table: Table) -> dg.AssetChecksDefinition:
    def check(context: dg.AssetCheckExecutionContext, workspace: dg.ResourceParam[Workspace]) -> dg.AssetCheckResult:
        found = findings(workspace, context.partition_key, table)
        odd = [each.told() for each in found if not each.holds]
        return dg.AssetCheckResult(
            passed=not odd,
            severity=dg.AssetCheckSeverity.WARN,
            description="; ".join(odd) or None,
            metadata={"month": context.partition_key, **_numbers(found), **_history(found)},
        )

    with warnings.catch_warnings():
        # Checks by partition are a preview in Dagster 1.13, and just what a check of a month is.
        warnings.simplefilter("ignore", dg.PreviewWarning)
        return dg.asset_check(
            asset=table.name,
            name=f"{table.name}_are_as_in_other_months",
            description="The month's measures lie within fixed bounds, and near those of the months around it.",
            partitions_def=MONTHS,
            retry_policy=retry_of_lost_steps(),
        )(check)


def _numbers(found: Sequence[Finding]) -> dict[str, Any]:
    """Each measure with its range, under names of its own."""
    return {
        name: round(value, 6)
        for each in found
        for name, value in (
            (each.measure, each.value),
            (f"{each.measure}/low", each.low),
            (f"{each.measure}/high", each.high),
        )
    }


def _history(found: Sequence[Finding]) -> dict[str, Any]:
    """The measures of the months around, as a table; nothing where there is no other month."""
    months = sorted({month for each in found for month in each.neighbours})
    if not months:
        return {}
    rows = [
        (month, *(f"{each.neighbours[month]:.4g}" if month in each.neighbours else "–" for each in found))
        for month in months
    ]
    return {"history": dg.MetadataValue.md(markdown_table(("month", *(each.measure for each in found)), rows))}


papers_quality = _check(PAPERS)
passages_quality = _check(PASSAGES)
embeddings_quality = _check(EMBEDDINGS)
index_quality = _check(INDEX_RECEIPTS)
