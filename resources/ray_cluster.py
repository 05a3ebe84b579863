"""The executor that runs each step of a Dagster run as a job of a Ray cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dagster as dg
from dagster_ray.core.executor import (  # type: ignore[attr-defined, unused-ignore]
    RayStepHandler,
    RetryMode,
    StepDelegatingExecutor,
)

from pipeline.ops.ray_cluster import check_cluster, job_client, node_environment
from pipeline.settings import load_settings
from pipeline.stages import STAGES

# Ray itself takes half a minute to notice that a node is lost; a check is one small request per
# running step.
_SECONDS_BETWEEN_CHECKS = 10
_RUN_LABEL = "dagster/run-id"  # as dagster-ray labels its jobs


@dg.executor(name="ray", requirements=dg.multiple_process_executor_requirements())
def ray_executor(context: dg.InitExecutorContext) -> dg.Executor:
    """`dagster_ray.ray_executor`, configured by the settings: each step is a Ray job on the cluster
    at CITELOOM_RAY_ADDRESS.

    Differs from `dagster_ray.ray_executor` in its step handler alone (`RunAwareStepHandler`).
    Raises SettingError if the settings do not suit a cluster, TransientFailure if no job server
    answers.
    """
    settings = load_settings()
    nodes = {node.name for node in context.job.get_definition().nodes}
    enabled = {stage.name for stage in STAGES if not stage.disabled_reason(settings)}
    check_cluster(settings, nodes & enabled)
    handler = RunAwareStepHandler(
        client=job_client(settings),
        env_vars=None,
        runtime_env={"env_vars": dict(node_environment(settings))},
        num_cpus=settings.step_cpus,
        num_gpus=None,  # by a tag of the step `embeddings`
        memory=None,
        resources=None,
    )
    executor: dg.Executor = StepDelegatingExecutor(
        handler,
        retries=RetryMode.ENABLED,
        check_step_health_interval_seconds=_SECONDS_BETWEEN_CHECKS,
        should_verify_step=True,
    )
    return executor


class RunAwareStepHandler(RayStepHandler):  # type: ignore[misc, unused-ignore]
    """dagster-ray's step handler (0.4.8) with two promises that it does not keep.

    A job that was stopped from outside (`ray job stop`) reports nothing any more, and dagster-ray
    takes it for healthy, so its run would never end: here the step counts as lost. Steps of a run
    whose process was killed go on: here they are stopped before the next step starts, as they hold
    processors and the lock of their month.
    """

    def launch_step(self, step_handler_context: Any) -> Iterator[dg.DagsterEvent]:
        """Start a step, after stopping those of ended runs."""
        self.stop_steps_of_ended_runs(step_handler_context.instance)
        yield from super().launch_step(step_handler_context)

    def check_step_health(self, step_handler_context: Any) -> Any:
        """Whether a step's job still runs or has succeeded."""
        from ray.job_submission import JobStatus

        health = super().check_step_health(step_handler_context)
        job = self._get_ray_job_submission_id(step_handler_context)
        if health.is_healthy and self.client.get_job_status(job) == JobStatus.STOPPED:
            return type(health).unhealthy(f"Ray job {job} was stopped from outside.")
        return health

    def stop_steps_of_ended_runs(self, instance: dg.DagsterInstance) -> None:
        """Stop jobs whose run has ended. Jobs of runs that this instance does not know belong to
        others.
        """
        from ray.job_submission import JobStatus

        for job in self.client.list_jobs():
            run_id = (job.metadata or {}).get(_RUN_LABEL)
            if (
                run_id
                and job.submission_id
                and job.status in (JobStatus.PENDING, JobStatus.RUNNING)
            ):
                run = instance.get_run_by_id(run_id)
                if run is not None and run.is_finished:
                    self.client.stop_job(job.submission_id)
