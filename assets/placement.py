"""Pools, retries and GPUs of steps, as assets and jobs need them when they are defined."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pipeline.errors import SettingError
from pipeline.settings import Settings, load_settings

POOLS = ("arxiv_api", "gpu", "llm", "qdrant")
"""The pools that assets name; dagster.yaml says what each is for."""
LOST_STEPS = 2
"""How often a step whose node is lost is retried; what it finished piece by piece stays."""


def definition_time_settings() -> Settings:
    """Settings read at definition time. If one is invalid, the defaults: each run names the invalid one."""
    try:
        return load_settings()
    except SettingError:
        return Settings.model_construct(executor="in_process")


def gpu_tags(settings: Settings) -> Mapping[str, str]:
    """Tags of the step that embeds: the GPUs it requests, as dagster-ray and dagster-k8s read them."""
    gpus = settings.embedding_gpus
    if not gpus or not settings.on_cluster:
        return {}
    resources = {"limits": {"nvidia.com/gpu": f"{gpus:g}"}}
    return {
        "dagster-ray/config": json.dumps({"num_gpus": gpus}),
        "dagster-k8s/config": json.dumps({"container_config": {"resources": resources}}),
    }
