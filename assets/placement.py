"""Where steps run and what they ask of a cluster, as assets and jobs are told when they are defined."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pipeline.errors import SettingError
from pipeline.settings import Settings, load_settings

POOLS = ("arxiv_api", "gpu", "llm", "qdrant")
"""The pools that assets name; dagster.yaml says what each is for."""
LOST_STEPS = 2
"""Times that a step is begun again whose node is lost; what it kept piece by piece stays."""


def definition_time_settings() -> Settings:
    """Settings read at definition time. Where one is wrong, those without a cluster: each run names the wrong one."""
    try:
        return load_settings()
    except SettingError:
        return Settings.model_construct(executor="in_process")


def gpu_tags(settings: Settings) -> Mapping[str, str]:
    """Tags of the step that embeds: the GPUs that it asks for, as dagster-ray and dagster-k8s read them."""
    gpus = settings.embedding_gpus
    if not gpus or not settings.on_cluster:
        return {}
    resources = {"limits": {"nvidia.com/gpu": f"{gpus:g}"}}
    return {
        "dagster-ray/config": json.dumps({"num_gpus": gpus}),
        "dagster-k8s/config": json.dumps({"container_config": {"resources": resources}}),
    }
