"""The stage `report`: the static pages of a month."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pipeline import tables
from pipeline.engine.stage import Job, Stage, Workspace
from pipeline.report import UPSTREAM
from pipeline.storage.provenance import Provenance
from pipeline.storage.writing import Row


class Report(Stage):
    """The month's report: a static folder of pages that works from disk."""

    # Modules of the report are imported where they are called: Dagster and most commands load the
    # stages, and these modules take 0.2 s to import.

    table = tables.REPORT
    upstream = UPSTREAM
    version = 5
    kinds = ("html",)

    def build(self, job: Job) -> Iterator[Row]:
        from pipeline.report.publish import publish

        return publish(job)

    def inputs(self, workspace: Workspace, month: str) -> Mapping[str, str]:
        from pipeline.report.publish import inputs

        return inputs(workspace, month)

    def outputs_exist(self, workspace: Workspace, month: str, written: Provenance) -> bool:
        from pipeline.report.publish import outputs_exist

        return outputs_exist(workspace, month, written)

    def finish(self, workspace: Workspace) -> None:
        from pipeline.report.publish import write_overall_page

        write_overall_page(workspace)


REPORT = Report()
