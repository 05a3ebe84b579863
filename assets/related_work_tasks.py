"""The asset `related_work_tasks`."""

from __future__ import annotations

from assets.stage_asset import stage_asset
from pipeline.related_work.tasks import RELATED_WORK_TASKS

related_work_tasks = stage_asset(
    RELATED_WORK_TASKS,
    group="related_work",
    description="Papers whose related work cites papers of the corpus; the section is taken out and is the gold text.",
)
