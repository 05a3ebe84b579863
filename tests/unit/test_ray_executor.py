"""Our step handler against a job server that exists in memory only."""

from types import SimpleNamespace

import dagster as dg
import pytest

pytest.importorskip(
    "dagster_ray",
    reason="Ray is not installed: pip install --constraint constraints.txt --editable '.[ray]'",
)

from resources.ray_cluster import RunAwareStepHandler
from tests.cases import cases


class JobServer:
    """Answers as Ray's job server about jobs of one status each."""

    def __init__(self):
        self.jobs = []
        self.stopped = []
        self.status = "RUNNING"

    def add(self, name, run_id, status="RUNNING"):
        metadata = {"dagster/run-id": run_id} if run_id else None
        self.jobs.append(SimpleNamespace(submission_id=name, metadata=metadata, status=status))

    def list_jobs(self):
        return self.jobs

    def stop_job(self, name):
        self.stopped.append(name)

    def get_job_status(self, name):
        return self.status

    def get_job_info(self, name):
        return SimpleNamespace(error_type=None, message="its node is lost")


def handler(server):
    nothing = dict.fromkeys(("env_vars", "runtime_env", "num_gpus", "memory", "resources"))
    return RunAwareStepHandler(client=server, num_cpus=1.0, **nothing)


def step():
    """The context of the step `papers` of a run."""
    arguments = SimpleNamespace(run_id="5b6d", step_keys_to_execute=["papers"], known_state=None)
    return SimpleNamespace(execute_step_args=arguments)


@cases("unit/cases.toml", "a_job_that_failed_or_was_stopped_is", ["status", "healthy"])
def test_a_job_that_failed_or_was_stopped_is_a_lost_step(status, healthy):
    server = JobServer()
    server.status = status
    assert handler(server).check_step_health(step()).is_healthy is healthy


def test_jobs_of_ended_runs_are_stopped_and_no_others():
    server = JobServer()
    with dg.DagsterInstance.ephemeral() as instance:
        ended, going = (
            instance.create_run_for_job(_job, status=dg.DagsterRunStatus.STARTED).run_id
            for _ in range(2)
        )
        run = instance.get_run_by_id(ended)
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
def _job(): ...
