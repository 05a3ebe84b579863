"""The checks of a stage's month as Dagster asset checks."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import dagster as dg

from assets import MONTHS, OWNER_METADATA
from assets.placement import retry_of_lost_steps
from pipeline.engine.checks import CheckEvaluated, evaluate, record
from pipeline.engine.stage import CheckResult, MonthCheck, Stage, Workspace
from pipeline.errors import TransientFailure
from pipeline.settings import Settings

# A month of a million points takes Edge minutes to load.
_TRIES, _SECONDS_BETWEEN_TRIES = 40, 15.0
# The job, as the page of runs shows it, that records the checks of a month of the command line.
RECORDING_JOB = "checks_of_the_command_line"


def build_check(stage: Stage, check: MonthCheck, settings: Settings) -> dg.AssetChecksDefinition:
    """A check of a stage's month as Dagster's. settings: they say where its step runs."""

    def run(
        context: dg.AssetCheckExecutionContext, workspace: dg.ResourceParam[Workspace]
    ) -> dg.AssetCheckResult:
        month = context.partition_key
        try:
            result = evaluate(stage, check, workspace, month)
        except TransientFailure as error:  # another process may be searching the in-process index
            raise dg.RetryRequested(_TRIES, _SECONDS_BETWEEN_TRIES) from error
        record(stage, check, workspace, month, result)
        return _dagster_result(check, month, result)

    with _preview_accepted():
        return dg.asset_check(
            asset=stage.name,
            name=check.name,
            description=check.description,
            blocking=check.blocking,
            metadata=OWNER_METADATA,
            partitions_def=MONTHS,
            retry_policy=retry_of_lost_steps(settings),
        )(run)


def record_results(instance: dg.DagsterInstance, evaluated: Sequence[CheckEvaluated]) -> None:
    """Record the results of checks of one month, evaluated outside Dagster, by one short run.

    Dagster 1.13 refuses a second result of a check and partition outside runs, and only a step of
    a run links a result to the materialization, without which the month has no mark. It takes
    0.2 s of processor time.
    """
    failed = sum(not event.result.passed for event in evaluated)
    # What the list of runs says, whose status tells only that the results were recorded.
    verdict = f"{failed} of {len(evaluated)} did not pass" if failed else "passed"
    tags = {"dagster/partition": evaluated[0].month, "citeloom/checks": verdict}
    run_in_process(instance, RECORDING_JOB, [_recorded_check(event) for event in evaluated], tags)


def run_in_process(
    instance: dg.DagsterInstance,
    job: str,
    checks: Sequence[dg.AssetChecksDefinition],
    tags: Mapping[str, str] | None = None,
    **resources: object,
) -> None:
    """Run a job of checks alone in this process, silently, as a command does."""
    definitions = dg.Definitions(
        asset_checks=checks,
        jobs=[dg.define_asset_job(job, dg.AssetSelection.all_asset_checks())],
        resources=resources,
    )
    # In a thread, where Dagster leaves the command's signal handlers alone.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(
            definitions.resolve_job_def(job).execute_in_process,
            instance=instance,
            tags=tags,
            run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
        ).result()


def _recorded_check(event: CheckEvaluated) -> dg.AssetChecksDefinition:
    """A check that gives the result of an earlier evaluation. It blocks nothing: the command has
    stopped the month, and a run that failed would be reported once more.
    """

    def run() -> dg.AssetCheckResult:
        return _dagster_result(event.check, event.month, event.result)

    with _preview_accepted():
        return dg.asset_check(asset=event.stage, name=event.check.name, partitions_def=MONTHS)(run)


def _dagster_result(check: MonthCheck, month: str, result: CheckResult) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        passed=result.passed,
        # The failure of a warning fails no run.
        severity=dg.AssetCheckSeverity.WARN if check.warning else dg.AssetCheckSeverity.ERROR,
        description=result.description or None,
        metadata={"month": month, **result.facts},
    )


@contextmanager
def _preview_accepted() -> Iterator[None]:
    """Checks by partition are a preview in Dagster 1.13, and just what a check of a month is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.PreviewWarning)
        yield
