"""Dagster's executor for runs of stages."""

from __future__ import annotations

import importlib.util

import dagster as dg

from pipeline.errors import SettingError
from pipeline.ops.ray_cluster import check_installed
from pipeline.settings import Settings


def chosen_executor(settings: Settings) -> dg.ExecutorDefinition:
    """The executor that CITELOOM_EXECUTOR names. Raises SettingError if its package is not installed."""
    if settings.executor == "ray":
        check_installed()
        from resources.ray_cluster import ray_executor

        return ray_executor
    if settings.executor == "k8s":
        if importlib.util.find_spec("dagster_k8s") is None:
            raise SettingError("CITELOOM_EXECUTOR=k8s needs dagster-k8s: pip install 'citeloom[k8s]'")
        from dagster_k8s import k8s_job_executor

        return k8s_job_executor
    return dg.in_process_executor
