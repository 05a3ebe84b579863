"""Where steps run: the executor, the GPUs that a step asks for, and which steps are retried."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache

import dagster as dg

from pipeline.errors import CiteloomError, SettingError
from pipeline.ops.ray_cluster import check_installed
from pipeline.settings import Settings, load_settings

LOST_STEPS = 2
"""How often a step whose node is lost is retried; what it finished piece by piece stays."""


@cache
def definition_time_settings() -> Settings:
    """Settings read once, at definition time. If one is invalid, the defaults: each run names the
    invalid one.
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


def final_failure(message: str) -> dg.Failure:
    """The failure of a step, with a message for the user."""
    return dg.Failure(description=message, allow_retries=False)


@contextmanager
def failing_without_retry() -> Iterator[None]:
    """Raise an error of the pipeline as `final_failure`."""
    try:
        yield
    except CiteloomError as error:
        raise final_failure(str(error)) from error


def choose_executor(settings: Settings) -> dg.ExecutorDefinition:
    """The executor that CITELOOM_EXECUTOR names. Raises SettingError if its package is not
    installed.
    """
    if settings.executor == "ray":
        check_installed()
        from resources.ray_cluster import ray_executor

        return ray_executor
    return dg.in_process_executor
