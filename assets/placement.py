"""Where steps run: the executor, retries, and the GPUs that a step asks for."""

from __future__ import annotations

import json
from collections.abc import Mapping

import dagster as dg

from pipeline.errors import SettingError
from pipeline.ops.ray_cluster import check_installed
from pipeline.settings import Settings, load_settings

LOST_STEPS = 2
"""How often a step whose node is lost is retried; what it finished piece by piece stays."""


def definition_time_settings() -> Settings:
    """Settings read at definition time. If one is invalid, the defaults: each run names the invalid
    one.
    """
    try:
        return load_settings()
    except SettingError:
        return Settings.model_construct(executor="in_process")


def gpu_tags(settings: Settings) -> Mapping[str, str]:
    """Tags of the embedding step: the GPUs it requests, for dagster-ray."""
    if not settings.embedding_gpus or not settings.on_cluster:
        return {}
    return {"dagster-ray/config": json.dumps({"num_gpus": settings.embedding_gpus})}


def retry_of_lost_steps(settings: Settings) -> dg.RetryPolicy | None:
    """On a cluster, a step whose node is lost is started again on another."""
    return dg.RetryPolicy(max_retries=LOST_STEPS) if settings.on_cluster else None


def choose_executor(settings: Settings) -> dg.ExecutorDefinition:
    """The executor that CITELOOM_EXECUTOR names. Raises SettingError if its package is not
    installed.
    """
    if settings.executor == "ray":
        check_installed()
        from resources.ray_cluster import ray_executor

        return ray_executor
    return dg.in_process_executor
