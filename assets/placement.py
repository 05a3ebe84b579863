"""Where steps run and which pools and devices they take, as assets and jobs need it when they are defined."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping

import dagster as dg

from pipeline.errors import SettingError
from pipeline.ops.ray_cluster import check_installed
from pipeline.settings import Settings, load_settings

POOLS = ("arxiv_api", "gpu", "llm", "qdrant")
"""The pools that assets name; dagster.yaml says what each is for."""
LOST_STEPS = 2
"""How often a step whose node is lost is retried; what it finished piece by piece stays."""


def defined() -> Settings:
    """The settings by which assets are defined. If one is invalid, the defaults: each run reports what is wrong."""
    try:
        return load_settings()
    except SettingError:
        return Settings.model_construct(executor="in_process")


def chosen_executor(settings: Settings) -> dg.ExecutorDefinition:
    """Dagster's executor for runs of stages, as CITELOOM_EXECUTOR names it.

    Raises SettingError if its package is not installed.
    """
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


def device_pool(settings: Settings) -> str | None:
    """The pool that keeps a machine's GPU for one step at a time; none on a cluster, which hands out GPUs itself."""
    return None if settings.on_cluster else "gpu"


def device_tags(settings: Settings) -> Mapping[str, str]:
    """Tags of the step that embeds: the GPUs it asks for, as dagster-ray and dagster-k8s read them."""
    gpus = settings.embedding_gpus
    if not gpus or not settings.on_cluster:
        return {}
    resources = {"limits": {"nvidia.com/gpu": f"{gpus:g}"}}
    return {
        "dagster-ray/config": json.dumps({"num_gpus": gpus}),
        "dagster-k8s/config": json.dumps({"container_config": {"resources": resources}}),
    }
