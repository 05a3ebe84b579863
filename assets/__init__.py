"""The assets, checks, jobs and partitions that Dagster shows."""

import dagster as dg

# docs/contributing/decisions.md
MONTHS = dg.MonthlyPartitionsDefinition(start_date="1991-07", fmt="%Y-%m", end_offset=1)
"""The one partition dimension: arXiv's months, from the first to the present one."""

OWNERS = ("team:citeloom",)
"""Owners of every asset."""
OWNER_METADATA = {"owner": OWNERS[0]}
"""The owner of a check, job, schedule or sensor: in Dagster 1.13 these have no owners, or only as a
beta that warns.
"""
