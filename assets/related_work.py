"""The assets of related work: tasks, key elements, summaries."""

from __future__ import annotations

from typing import Any

from assets.stage_asset import StageAsset, writer_settings
from pipeline.llm.models import settings_for
from pipeline.related_work.stages import KEY_ELEMENTS, SUMMARIES, element_models
from pipeline.related_work.systems import RELATED_WORK_WRITERS
from pipeline.related_work.tasks import RELATED_WORK_TASKS
from pipeline.settings import Settings


def _element_settings(settings: Settings) -> dict[str, Any]:
    """The longest key element of each model that extracts them."""
    return {model: settings_for(settings, model).element_tokens for model in element_models(settings)}


def _summary_settings(settings: Settings) -> dict[str, Any]:
    return {**writer_settings(RELATED_WORK_WRITERS.chosen(settings), settings), "imported": settings.imported_sections}


RELATED_WORK = (
    StageAsset(
        RELATED_WORK_TASKS,
        "related_work",
        "Papers whose related work cites papers of the corpus; the section is taken out and is the gold text.",
    ),
    StageAsset(
        KEY_ELEMENTS,
        "related_work",
        "Seven key elements of every target and reference (ChatCite, figure 2).",
        kinds=("parquet", "openai"),
        part_settings=_element_settings,
    ),
    StageAsset(
        SUMMARIES,
        "related_work",
        "The related work of every task by each writer of CITELOOM_SYSTEMS (ChatCite, its ablations, baselines), and "
        "sections written elsewhere, from the CSV file of CITELOOM_IMPORTED_SECTIONS.",
        kinds=("parquet", "openai"),
        part_settings=_summary_settings,
    ),
)
