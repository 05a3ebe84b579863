"""Steps as jobs of a Ray cluster, over its job server: submitting and stopping them.

Ray knows a job's command, environment and labels, and keeps them.
"""

from __future__ import annotations

import importlib.util
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from pipeline.errors import SettingError, TransientFailure
from pipeline.settings import Settings
from resources.cluster import node_environment

if TYPE_CHECKING:
    from ray.job_submission import JobSubmissionClient

_RUN_LABEL = "dagster/run-id"
_STEP = "pipeline.running.step_on_node"
_MOST_NODES = 10_000


def step_client(settings: Settings) -> JobSubmissionClient:
    """A client of the job server that starts steps of ours, with our settings.

    Raises SettingError where Ray's package is not installed, TransientFailure where no job server answers.
    """
    _check_installed()
    client: JobSubmissionClient = _connected(settings.ray_address, _step_client_class(), settings)
    return client


@dataclass(frozen=True, slots=True)
class RayNode:
    """A node that is there, and what steps may take of it in all."""

    cpus: float
    gpus: float


def nodes_of(settings: Settings) -> list[RayNode]:
    """The nodes of the cluster that are alive. Raises as `step_client` does."""
    _check_installed()
    from ray.job_submission import JobSubmissionClient
    from ray.util.state import list_nodes

    _connected(settings.ray_address, JobSubmissionClient)
    found = list_nodes(address=settings.ray_address, filters=[("state", "=", "ALIVE")], limit=_MOST_NODES)
    had = [node.resources_total or {} for node in found]
    return [RayNode(float(each.get("CPU", 0)), float(each.get("GPU", 0))) for each in had]


def stop_jobs(settings: Settings, run_id: str) -> list[str]:
    """Stop the jobs of a run that still go on; their ids. Raises as `step_client` does."""
    _check_installed()
    from ray.job_submission import JobStatus, JobSubmissionClient

    client = _connected(settings.ray_address, JobSubmissionClient)
    going = [
        job.submission_id
        for job in client.list_jobs()
        if (job.metadata or {}).get(_RUN_LABEL) == run_id and job.status in (JobStatus.PENDING, JobStatus.RUNNING)
    ]
    for job in going:
        client.stop_job(job)
    return going


def _check_installed() -> None:
    if importlib.util.find_spec("ray") is None or importlib.util.find_spec("dagster_ray") is None:
        raise SettingError("CITELOOM_EXECUTOR=ray needs Ray: pip install 'citeloom[ray]', here and on every node")


def _connected(address: str, kind: Any, *arguments: Any) -> Any:
    """A client of the job server at an address, which answers."""
    from ray.exceptions import AuthenticationError

    try:
        return kind(address, *arguments)
    # As Ray says that nobody answers, that it is no job server, that it is no address, and that the token is not right.
    except (ConnectionError, RuntimeError, ValueError, AuthenticationError) as error:
        reason = " ".join(str(error).split())[:300]
        raise TransientFailure(f"CITELOOM_RAY_ADDRESS: no Ray job server at {address}: {reason}") from error


@cache
def _step_client_class() -> Any:
    """The class of the client, made where it is needed: Ray takes a second to import."""
    from ray.job_submission import JobSubmissionClient

    base: Any = JobSubmissionClient  # which mypy does not see where Ray is not installed

    class StepClient(base):  # type: ignore[misc]
        """Submits what dagster-ray submits, but as a process of ours, and with our settings in its environment."""

        def __init__(self, address: str, settings: Settings) -> None:
            super().__init__(address)
            self._environment = node_environment(settings)

        def submit_job(
            self, *, metadata: Mapping[str, str], runtime_env: Mapping[str, Any], entrypoint: str, **others: Any
        ) -> str:
            # dagster-ray's `entrypoint` is `dagster api execute_step`, which `step_on_node` runs itself. The exec
            # makes it a child of Ray's own process, with which it ends.
            command = f"exec {shlex.quote(sys.executable)} -m {_STEP} {shlex.quote(metadata[_RUN_LABEL])}"
            environment = {**runtime_env.get("env_vars", {}), **self._environment}
            return str(
                super().submit_job(
                    entrypoint=command,
                    metadata=dict(metadata),
                    runtime_env={**runtime_env, "env_vars": environment},
                    **others,
                )
            )

    return StepClient
