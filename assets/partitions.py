"""The one partition dimension: arXiv months."""

from __future__ import annotations

import dagster as dg

from pipeline.arxiv.months import FIRST_MONTH

# Time windows rather than a list that grows: ranges, schedules and freshness by partition come with them. The month
# that has just begun is a partition too, since its first papers are announced in it.
MONTHS = dg.TimeWindowPartitionsDefinition(start=FIRST_MONTH, cron_schedule="0 0 1 * *", fmt="%Y-%m", end_offset=1)
