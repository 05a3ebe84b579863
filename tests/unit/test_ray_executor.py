"""Our step handler against a job server that exists in memory only."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest

pytest.importorskip(
    "dagster_ray",
    reason="Ray is not installed: pip install --constraint constraints.txt --editable '.[ray]'",
)

from resources.ray_cluster import RunAwareStepHandler


class JobServer:
    """Answers as Ray's job server about jobs of one status each."""

    def __init__(self) -> None:
        self.jobs: list[Any] = []
        self.stopped: list[str] = []
        self.status = "RUNNING"

    def add(self, name: str, run_id: str | None, status: str = "RUNNING") -> None:
        metadata = {"dagster/run-id": run_id} if run_id else None
        self.jobs.append(SimpleNamespace(submission_id=name, metadata=metadata, status=status))

    def list_jobs(self) -> list[Any]:
        return self.jobs

    def stop_job(self, name: str) -> None:
        self.stopped.append(name)

    def get_job_status(self, name: str) -> str:
        return self.status

    def get_job_info(self, name: str) -> Any:
        return SimpleNamespace(error_type=None, message="its node is lost")


def handler(server: JobServer) -> RunAwareStepHandler:
    nothing: dict[str, Any] = dict.fromkeys(
        ("env_vars", "runtime_env", "num_gpus", "memory", "resources")
    )
    return RunAwareStepHandler(client=server, num_cpus=1.0, **nothing)


def step() -> Any:
    """The context of the step `papers` of a run."""
    arguments = SimpleNamespace(run_id="5b6d", step_keys_to_execute=["papers"], known_state=None)
    return SimpleNamespace(execute_step_args=arguments)


@pytest.mark.parametrize(
    ("status", "healthy"),
    [
        ("PENDING", True),
        ("RUNNING", True),
        ("SUCCEEDED", True),
        ("FAILED", False),
        ("STOPPED", False),
    ],
)
def test_a_job_that_failed_or_was_stopped_is_a_lost_step(status: str, healthy: bool) -> None:
    server = JobServer()
    server.status = status
    assert handler(server).check_step_health(step()).is_healthy is healthy


def test_jobs_of_ended_runs_are_stopped_and_no_others() -> None:
    server = JobServer()
    with dg.DagsterInstance.ephemeral() as instance:
        ended, going = (
            instance.create_run_for_job(_job, status=dg.DagsterRunStatus.STARTED).run_id
            for _ in range(2)
        )
        run = instance.get_run_by_id(ended)
        assert run is not None
        instance.report_run_failed(run)
        server.add("orphan", ended)
        server.add("waiting orphan", ended, "PENDING")
        server.add("over", ended, "SUCCEEDED")
        server.add("at work", going)
        server.add("of another Dagster", "unknown")
        server.add("no step", None)
        handler(server).stop_steps_of_ended_runs(instance)
    assert server.stopped == ["orphan", "waiting orphan"]


@dg.job
def _job() -> None: ...
