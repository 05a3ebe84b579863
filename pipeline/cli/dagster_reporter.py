"""Reports what the command line computes to Dagster, so that its UI shows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pipeline.engine.checks import CheckEvaluated
from pipeline.engine.progress import (
    AllMonthsFinished,
    Event,
    Notice,
    Outcome,
    RunPlanned,
    StageFinished,
    publish,
)
from pipeline.engine.redaction import collect_secrets, redact
from pipeline.engine.stage import Workspace
from pipeline.text import one_line

if TYPE_CHECKING:
    import dagster as dg

    from pipeline.ops.refresh.summary import RefreshSummary

    DagsterEvent = dg.AssetMaterialization | dg.AssetCheckEvaluation


class DagsterReporter:
    """Records computed months and checks in Dagster, outside any run (15 ms each).

    Where Dagster's storage cannot be reached the work goes on, and one message says so.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._instance: dg.DagsterInstance | None = None
        self._unreachable = False
        self._months: set[str] = set()

    def report(self, event: Event) -> None:
        """Record what an event says. Planned months are offered as partitions with the first
        record.
        """
        match event:
            case RunPlanned(months):
                self._months.update(months)
            case StageFinished(outcome):
                self._report_outcome(outcome)
            case AllMonthsFinished(stage):
                self._report_finish(stage)
            case CheckEvaluated():
                self._report_check(event)

    def _report_outcome(self, outcome: Outcome) -> None:
        """Record a month that was computed; one that was skipped has been recorded before. A
        disabled stage is no asset that can be materialized.
        """
        if outcome.skipped or outcome.disabled:
            return

        def make(instance: dg.DagsterInstance) -> DagsterEvent:
            from assets.stage_asset import materialization
            from pipeline.stages import lookup_stage

            return materialization(lookup_stage(outcome.stage), self._workspace, outcome, instance)

        self._report(f"{outcome.stage} of {outcome.month}", make)

    def _report_check(self, event: CheckEvaluated) -> None:
        def make(instance: dg.DagsterInstance) -> DagsterEvent:
            from assets.checks import evaluation

            return evaluation(event)

        self._report(f"{event.check.name} of {event.month}", make)

    def _report_finish(self, stage: str) -> None:
        """Record the work over all months of a stage as a materialization of the asset `months`."""

        def make(instance: dg.DagsterInstance) -> DagsterEvent:
            import dagster as dg

            from assets.operations import months

            return dg.AssetMaterialization(months.key, metadata={"finished": stage})

        self._report(f"{stage} of all months", make)

    def report_refresh(self, summary: RefreshSummary) -> None:
        """Record the summary of a refresh as a materialization of the asset `refresh_summary`."""

        def make(instance: dg.DagsterInstance) -> DagsterEvent:
            import dagster as dg

            from assets.operations import refresh_summary, summary_metadata

            metadata = summary_metadata(self._workspace, summary)
            return dg.AssetMaterialization(refresh_summary.key, metadata=metadata)

        self._report("the summary", make)

    def _report(self, name: str, make: Callable[[dg.DagsterInstance], DagsterEvent]) -> None:
        if self._unreachable:
            return
        try:
            instance = self._open()
        # Any error of Dagster or its storage: the month itself is in place.
        except Exception as error:
            self._unreachable = True
            self._note(
                "Dagster's storage cannot be reached: the Dagster UI will not show this command's"
                " work",
                error,
            )
            return
        try:
            _record(instance, make(instance))
        except Exception as error:
            self._note(f"{name} could not be reported to Dagster", error)

    def _note(self, message: str, error: Exception) -> None:
        reason = redact(one_line(str(error))[:300], collect_secrets(self._workspace.settings))
        publish(Notice(f"{message} ({type(error).__name__}: {reason}); the work goes on"))

    def _open(self) -> dg.DagsterInstance:
        if self._instance is None:
            from resources.dagster_home import dagster_home, open_instance

            self._instance = open_instance(dagster_home(self._workspace))
        if self._months:
            from assets.partitions import offer_months

            offer_months(self._instance, self._months)
            self._months.clear()
        return self._instance


def _record(instance: dg.DagsterInstance, event: DagsterEvent) -> None:
    """Record an event outside any run.

    Outside runs, Dagster 1.13 accepts one evaluation of a check for each partition. A later one is
    recorded without its partition: it has the month in its metadata, and is the check's latest.
    """
    import dagster as dg
    from sqlalchemy.exc import IntegrityError  # Dagster's storages are made with SQLAlchemy

    from assets.checks import without_partition

    try:
        instance.report_runless_asset_event(event)
    except IntegrityError:
        if not isinstance(event, dg.AssetCheckEvaluation):
            raise
        instance.report_runless_asset_event(without_partition(event))
