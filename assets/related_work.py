"""Assets of related work: tasks, key elements, sections by every writer."""

from assets.stage_asset import month_asset, month_checks
from pipeline.related_work.stages import KEY_ELEMENTS, SUMMARIES
from pipeline.related_work.tasks import RELATED_WORK_TASKS

related_work_tasks = month_asset(RELATED_WORK_TASKS)
key_elements = month_asset(KEY_ELEMENTS)
summaries = month_asset(SUMMARIES)

summaries_checks = month_checks(SUMMARIES)
