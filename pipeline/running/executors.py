"""Which executor a job gets: the one that CITELOOM_EXECUTOR names."""

from __future__ import annotations

import importlib.util

import dagster as dg

from pipeline.errors import SettingError
from pipeline.settings import Settings


def chosen_executor(settings: Settings) -> dg.ExecutorDefinition:
    """The executor of the jobs whose steps are stages. Raises SettingError where its package is not installed."""
    if not settings.on_cluster:
        return dg.in_process_executor
    if settings.executor == "ray":
        from pipeline.running.ray_executor import on_ray

        return on_ray  # which needs its packages only once a run begins: a UI without them shows what is there
    if importlib.util.find_spec("dagster_k8s") is None:
        raise SettingError("CITELOOM_EXECUTOR=k8s needs dagster-k8s: pip install 'citeloom[k8s]'")
    from dagster_k8s import k8s_job_executor

    return k8s_job_executor
