"""Where steps run: the executor, retries, and the GPUs that a step asks for."""

from __future__ import annotations

import importlib.util
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
    """Tags of the embedding step: the GPUs it requests, for dagster-ray and dagster-k8s."""
    gpus = settings.embedding_gpus
    if not gpus or not settings.on_cluster:
        return {}
    resources = {"limits": {"nvidia.com/gpu": f"{gpus:g}"}}
    return {
        "dagster-ray/config": json.dumps({"num_gpus": gpus}),
        "dagster-k8s/config": json.dumps({"container_config": {"resources": resources}}),
    }


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
    if settings.executor == "k8s":
        if importlib.util.find_spec("dagster_k8s") is None:
            raise SettingError(
                "CITELOOM_EXECUTOR=k8s needs dagster-k8s: pip install --constraint constraints.txt"
                " --editable '.[k8s]'"
            )
        from dagster_k8s import k8s_job_executor

        return k8s_job_executor
    return dg.in_process_executor
