"""Reports what the command line computes to Dagster, so that its UI shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pipeline.engine.checks import CheckEvaluated
from pipeline.engine.progress import (
    AllMonthsFinished,
    Event,
    Notice,
    Outcome,
    StageFinished,
    listening,
    publish,
)
from pipeline.engine.redaction import collect_secrets, redact
from pipeline.engine.stage import Workspace
from pipeline.text import one_line

if TYPE_CHECKING:
    import dagster as dg

    from pipeline.ops.refresh.summary import RefreshSummary


@contextmanager
def reporting_to_dagster(workspace: Workspace) -> Iterator[DagsterReporter]:
    """Report what the block computes to Dagster."""
    reporter = DagsterReporter(workspace)
    with listening(reporter.report):
        try:
            yield reporter
        finally:
            reporter.record_checks()
            reporter.check_months()


class DagsterReporter:
    """Records computed months in Dagster, outside any run (15 ms each), and the checks of each
    month together, by a short run.

    Where Dagster's storage cannot be reached the work goes on, and one message says so.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._instance: dg.DagsterInstance | None = None
        self._unreachable = False
        self._made_months = False
        # Of one month, by stage and name; the newest result of each.
        self._checks: dict[tuple[str, str], CheckEvaluated] = {}

    def report(self, event: Event) -> None:
        """Record what an event says. Checks wait for the end of their month."""
        match event:
            case StageFinished(outcome):
                self._report_outcome(outcome)
            case AllMonthsFinished(stage):
                self.record_checks()
                self._report_finish(stage)
            case CheckEvaluated():
                if any(earlier.month != event.month for earlier in self._checks.values()):
                    self.record_checks()
                self._checks[event.stage, event.check.name] = event

    def _report_outcome(self, outcome: Outcome) -> None:
        """Record a month that was computed; one that was skipped has been recorded before."""
        if outcome.skipped:
            return

        def make(instance: dg.DagsterInstance) -> dg.AssetMaterialization:
            from assets.stage_asset import materialization
            from pipeline.stages import lookup_stage

            return materialization(lookup_stage(outcome.stage), self._workspace, outcome, instance)

        self._report(f"{outcome.stage} of {outcome.month}", make)

    def record_checks(self) -> None:
        """Record the checks that were evaluated since the last call."""
        if not self._checks:
            return
        checks = list(self._checks.values())
        self._checks.clear()

        def record(instance: dg.DagsterInstance) -> None:
            from assets.checks import record_results

            record_results(instance, checks)

        self._record(f"the checks of {checks[0].month}", record)

    def _report_finish(self, stage: str) -> None:
        """Record the work over all months of a stage as a materialization of the asset `months`."""

        def make(instance: dg.DagsterInstance) -> dg.AssetMaterialization:
            import dagster as dg

            from assets.operations import months

            return dg.AssetMaterialization(months.key, metadata={"finished": stage})

        self._report(f"{stage} of all months", make)
        self._made_months = True

    def check_months(self) -> None:
        """Evaluate the checks over all months where `months` was materialized: their last results
        would be hidden.
        """
        if self._made_months:
            from assets.operations import check_in_process

            self._record(
                "the checks over all months",
                lambda instance: check_in_process(instance, self._workspace),
            )

    def report_refresh(self, summary: RefreshSummary) -> None:
        """Record the summary of a refresh as a materialization of the asset `refresh_summary`."""

        def make(instance: dg.DagsterInstance) -> dg.AssetMaterialization:
            import dagster as dg

            from assets.operations import refresh_summary, summary_metadata

            metadata = summary_metadata(self._workspace, summary)
            return dg.AssetMaterialization(refresh_summary.key, metadata=metadata)

        self._report("the summary", make)

    def _report(
        self, name: str, make: Callable[[dg.DagsterInstance], dg.AssetMaterialization]
    ) -> None:
        self._record(name, lambda instance: instance.report_runless_asset_event(make(instance)))

    def _record(self, name: str, record: Callable[[dg.DagsterInstance], None]) -> None:
        if self._unreachable:
            return
        try:
            if self._instance is None:
                from resources.dagster_home import dagster_home, open_for_command

                self._instance = open_for_command(dagster_home(self._workspace))
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
            record(self._instance)
        except Exception as error:
            home = self._workspace.local / "dagster"
            self._note(f"{name} could not be reported to Dagster, whose home is {home}", error)

    def _note(self, message: str, error: Exception) -> None:
        # SQLAlchemy adds the statement that failed, which does not help a user.
        text = one_line(str(error).partition("\n[SQL")[0])[:300]
        reason = redact(text, collect_secrets(self._workspace.settings))
        publish(Notice(f"{message} ({type(error).__name__}: {reason}); the work goes on"))
