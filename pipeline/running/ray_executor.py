"""The executor that has each step of a run done as a job of a Ray cluster, by dagster-ray's step handler.

The run's own process starts the steps, follows them in Dagster's event log, and is seen to live like any other
(`run_process.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import dagster as dg
from dagster._core.execution.retries import RetryMode, get_retries_config
from dagster._core.executor.step_delegating import CheckStepHealthResult, StepDelegatingExecutor, StepHandlerContext

from pipeline.running.ray_jobs import step_client
from pipeline.running.run_process import own_from_now_on
from pipeline.settings import Settings, load_settings
from resources.cluster import check_cluster

if TYPE_CHECKING:
    from dagster_ray.core.executor import RayStepHandler

# Ray itself takes half a minute to know that a node is lost; a look is one small request for each step under way.
_SECONDS_BETWEEN_LOOKS = 10


class _RayExecutor(StepDelegatingExecutor):
    """Dagster's executor for steps elsewhere, whose process owns the run it works on."""

    def execute(self, plan_context: Any, execution_plan: Any) -> Iterator[dg.DagsterEvent]:
        settings = load_settings()
        check_cluster(settings, {key.partition(".")[0] for key in execution_plan.step_keys_to_execute})
        own_from_now_on(plan_context)
        yield from super().execute(plan_context, execution_plan)


@dg.executor(name="ray", config_schema={"retries": get_retries_config()})  # type: ignore[no-untyped-call]
def on_ray(context: dg.InitExecutorContext) -> dg.Executor:
    """Every step of a run as a job of the Ray cluster at CITELOOM_RAY_ADDRESS."""
    return _RayExecutor(
        _step_handler(load_settings()),
        retries=RetryMode.from_config(context.executor_config["retries"]),  # type: ignore[arg-type]
        check_step_health_interval_seconds=_SECONDS_BETWEEN_LOOKS,
        should_verify_step=True,
    )


def _step_handler(settings: Settings) -> RayStepHandler:
    """What starts, watches and stops a step. Raises as `step_client` does."""
    client = step_client(settings)
    from dagster_ray.core.executor import RayStepHandler
    from ray.job_submission import JobStatus

    base: Any = RayStepHandler  # which mypy does not see where Ray is not installed

    class StepHandler(base):  # type: ignore[misc]
        """As dagster-ray's (0.4.8), which takes a stopped job, that will tell nothing any more, for a healthy one."""

        def check_step_health(self, step_handler_context: StepHandlerContext) -> CheckStepHealthResult:
            found: CheckStepHealthResult = super().check_step_health(step_handler_context)
            job = self._get_ray_job_submission_id(step_handler_context)
            if found.is_healthy and self.client.get_job_status(job) == JobStatus.STOPPED:
                return CheckStepHealthResult.unhealthy(f"Ray job {job} was stopped from outside.")
            return found

    made: RayStepHandler = StepHandler(
        client, env_vars=None, runtime_env=None, num_cpus=settings.step_cpus, num_gpus=None, memory=None, resources=None
    )
    return made
