"""Our step handler against a job server that exists in memory only."""

from types import SimpleNamespace

import dagster as dg
import pytest

pytest.importorskip(
    "dagster_ray",
    reason="Ray is not installed: pip install --constraint constraints.txt --editable '.[ray]'",
)

from resources.ray_cluster import RunAwareStepHandler


class JobServer:
    """Answers as Ray's job server about jobs of one status each."""

    def __init__(self):
        self.jobs = []
        self.stopped = []

    def add(self, name, run_id, status="RUNNING"):
        metadata = {"dagster/run-id": run_id} if run_id else None
        self.jobs.append(SimpleNamespace(submission_id=name, metadata=metadata, status=status))

    def list_jobs(self):
        return self.jobs

    def stop_job(self, name):
        self.stopped.append(name)


def handler(server):
    nothing = dict.fromkeys(("env_vars", "runtime_env", "num_gpus", "memory", "resources"))
    return RunAwareStepHandler(client=server, num_cpus=1.0, **nothing)


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
