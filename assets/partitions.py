"""The one partition dimension: the arXiv months, from the first to the present one."""

from __future__ import annotations

import dagster as dg

# docs/contributing/decisions.md
MONTHS = dg.MonthlyPartitionsDefinition(start_date="1991-07", fmt="%Y-%m", end_offset=1)
