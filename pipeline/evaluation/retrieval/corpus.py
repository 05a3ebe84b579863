"""The passages of the months up to one, as what a query may find."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pipeline import tables
from pipeline.arxiv.identifiers import month_of
from pipeline.engine.digests import digest_of
from pipeline.engine.stage import Workspace
from pipeline.tables import Table


def months_until(workspace: Workspace, month: str) -> list[str]:
    """Months that have passages, up to and with this one, oldest first: nobody cites what comes later."""
    return [other for other in workspace.root.months(tables.PASSAGES) if other <= month]


def months_of(workspace: Workspace, month: str, papers: Iterable[str]) -> list[str]:
    """Those of `months_until` that the identifiers of these papers name."""
    named = {month_of(paper) for paper in papers}
    return [other for other in months_until(workspace, month) if other in named]


def passages_by_paper(workspace: Workspace, month: str) -> dict[str, int]:
    """How many passages each paper of a month has; a paper without one cannot be found and is not named."""
    column = workspace.root.read(tables.PASSAGES, month, ["arxiv_id"])["arxiv_id"]
    return {pair["values"]: pair["counts"] for pair in column.value_counts().to_pylist()}


def earlier_digests(workspace: Workspace, month: str, months: Iterable[str], *read: Table) -> Mapping[str, str]:
    """`digest_of` the months before this one, by table; this month's rows are a stage's `upstream` already."""
    earlier = [other for other in months if other < month]
    return {f"{table.name} before": digest_of(workspace, table, earlier) for table in read}
