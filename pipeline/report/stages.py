"""The stage `report`: the static pages of a month."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pipeline import tables
from pipeline.engine.stage import Job, Stage, Workspace
from pipeline.report import UPSTREAM
from pipeline.storage.provenance import Provenance
from pipeline.storage.writing import Row


# Imported when they run: Dagster and most commands load the stages, and the report's modules take
# 0.2 s to import.
def _publish(job: Job) -> Iterator[Row]:
    from pipeline.report.publish import publish

    return publish(job)


def _inputs(workspace: Workspace, month: str) -> Mapping[str, str]:
    from pipeline.report.publish import inputs

    return inputs(workspace, month)


def _outputs_exist(workspace: Workspace, month: str, provenance: Provenance) -> bool:
    from pipeline.report.publish import outputs_exist

    return outputs_exist(workspace, month, provenance)


def _finish(workspace: Workspace) -> None:
    from pipeline.report.publish import write_overall_page

    write_overall_page(workspace)


REPORT = Stage(
    table=tables.REPORT,
    build=_publish,
    upstream=UPSTREAM,
    version=4,
    inputs=_inputs,
    outputs_exist=_outputs_exist,
    finish=_finish,
    description="The month's report: a static folder of pages that works from disk.",
    kinds=("html",),
)
