"""The checks of a stage's month as Dagster asset checks."""

import warnings

import dagster as dg

from assets import OWNER_METADATA
from assets.partitions import MONTHS
from assets.placement import retry_of_lost_steps
from pipeline.engine.checks import CheckEvaluated, evaluate, record
from pipeline.engine.stage import MonthCheck, Stage, Workspace
from pipeline.errors import TransientFailure
from pipeline.settings import Settings

# A month of a million points takes Edge minutes to load.
_TRIES, _SECONDS_BETWEEN_TRIES = 40, 15.0


def build_check(stage: Stage, check: MonthCheck, settings: Settings) -> dg.AssetChecksDefinition:
    """A check of a stage's month as Dagster's. settings: they say where its step runs."""

    def run(
        context: dg.AssetCheckExecutionContext, workspace: dg.ResourceParam[Workspace]
    ) -> dg.AssetCheckResult:
        month = context.partition_key
        try:
            result = evaluate(stage, check, workspace, month)
        except TransientFailure as error:  # another process may be searching the embedded index
            raise dg.RetryRequested(_TRIES, _SECONDS_BETWEEN_TRIES) from error
        record(stage, check, workspace, month, result)
        return dg.AssetCheckResult(
            passed=result.passed,
            severity=severity_of(check),
            description=result.description or None,
            metadata={"month": month, **result.facts},
        )

    with warnings.catch_warnings():
        # Checks by partition are a preview in Dagster 1.13, and just what a check of a month is.
        warnings.simplefilter("ignore", dg.PreviewWarning)
        return dg.asset_check(
            asset=stage.name,
            name=check.name,
            description=check.description,
            blocking=check.blocking,
            metadata=OWNER_METADATA,
            partitions_def=MONTHS,
            retry_policy=retry_of_lost_steps(settings),
        )(run)


def evaluation(event: CheckEvaluated) -> dg.AssetCheckEvaluation:
    """The same result as an event, for a check that was evaluated outside any run of Dagster."""
    check, result = event.check, event.result
    return dg.AssetCheckEvaluation(
        asset_key=dg.AssetKey(event.stage),
        check_name=check.name,
        passed=result.passed,
        metadata={"month": event.month, **result.facts},
        severity=severity_of(check),
        description=result.description or None,
        blocking=check.blocking,
        partition=event.month,
    )


def without_partition(event: dg.AssetCheckEvaluation) -> dg.AssetCheckEvaluation:
    """The same event, with the month in its metadata alone."""
    return dg.AssetCheckEvaluation(
        asset_key=event.asset_key,
        check_name=event.check_name,
        passed=event.passed,
        metadata=event.metadata,
        severity=event.severity,
        description=event.description,
        blocking=event.blocking,
    )


def severity_of(check: MonthCheck) -> dg.AssetCheckSeverity:
    """WARN for a check whose failure fails no run."""
    return dg.AssetCheckSeverity.WARN if check.warning else dg.AssetCheckSeverity.ERROR
