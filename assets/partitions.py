"""The one partition dimension: the arXiv months that the dump or the data root has."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import dagster as dg

from pipeline.identity.months import is_month

# docs/contributing/decisions.md
_NAME = "months"


class _Months(dg.DynamicPartitionsDefinition):
    """The months that the instance offers. A run may name any month, so that `dagster asset
    materialize` works on an instance that offers none yet; a month without pages is empty.
    """

    def has_partition_key(
        self,
        partition_key: str,
        current_time: datetime | None = None,
        dynamic_partitions_store: Any = None,
    ) -> bool:
        return is_month(partition_key)


MONTHS = _Months(name=_NAME)


def offer_months(instance: dg.DagsterInstance, months: Iterable[str]) -> None:
    """Add months to the partitions, oldest first.

    Dagster lists dynamic partitions in the order in which they were added, and a range
    (`[2023-01...2023-12]`) follows it. So where an earlier month is added, the later ones are
    removed and added again; their events stay.
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
