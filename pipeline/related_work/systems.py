"""The systems that write related work, in the order of commands and reports."""

from __future__ import annotations

from pipeline.engine.systems import Writers
from pipeline.related_work import baselines, chatcite, lead_lexrank, litllm
from pipeline.system_names import FORMER_RELATED_WORK_SYSTEMS

SYSTEMS = {
    system.name: system
    for system in (
        chatcite.CHATCITE,
        chatcite.WITHOUT_ELEMENTS,
        baselines.WITHOUT_INCREMENTAL,
        chatcite.WITHOUT_REFLECTION,
        baselines.FEW_SHOT,
        litllm.LITLLM,
        baselines.ZERO_SHOT,
        litllm.LITLLM_PLAN,
        lead_lexrank.LEAD,
        lead_lexrank.LEXRANK,
    )
}

NOTES = "notes"
"""The annotated list, which `relate` writes in place of a section where no model is to write."""
RELATED_WORK_WRITERS = Writers(
    SYSTEMS,
    "systems",
    "chatcite",
    without_model=NOTES,
    former=FORMER_RELATED_WORK_SYSTEMS,
)
