"""The assets, checks, jobs and partitions that Dagster shows."""

OWNERS = ("team:citeloom",)
"""Owners of every asset."""
OWNER_METADATA = {"owner": OWNERS[0]}
"""The owner of a check, job, schedule or sensor: in Dagster 1.13 these have no owners, or only as a
beta that warns.
"""
