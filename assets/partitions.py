"""The one partition dimension: the arXiv months that the dump or the data root has."""

from __future__ import annotations

from collections.abc import Iterable

import dagster as dg

# docs/contributing/decisions/0006-months-as-dynamic-partitions.md
_NAME = "months"
MONTHS = dg.DynamicPartitionsDefinition(name=_NAME)


def offer_months(instance: dg.DagsterInstance, months: Iterable[str]) -> None:
    """Add months to the partitions, oldest first.

    Dagster lists dynamic partitions in the order in which they were added, and a range (`[2023-01...2023-12]`) follows
    it. So where an earlier month is added, the later ones are removed and added again; their events stay.
    """
    offered = list(instance.get_dynamic_partitions(_NAME))
    ordered = sorted({*offered, *months})
    in_place = 0
    while in_place < len(offered) and offered[in_place] == ordered[in_place]:
        in_place += 1
    for month in offered[in_place:]:
        instance.delete_dynamic_partition(_NAME, month)
    if ordered[in_place:]:
        instance.add_dynamic_partitions(_NAME, ordered[in_place:])
