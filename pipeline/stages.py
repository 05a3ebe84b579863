"""All stages, in the order in which they run."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile
from pkgutil import resolve_name

from pipeline.answering.systems import ANSWERING_WRITERS
from pipeline.engine.stage import Stage
from pipeline.engine.systems import lookup
from pipeline.evaluation.stages import ANSWER_GRADES, G_SCORES
from pipeline.related_work.systems import RELATED_WORK_WRITERS
from pipeline.settings import Settings
from pipeline.tables import TABLES

STAGES: tuple[Stage, ...] = tuple(
    resolve_name(f"{table.stage_module}:{table.name.upper()}")
    for table in TABLES.values()
    if table.stage_module is not None
)
"""All stages, in the order in which they run."""

CORPUS_STAGES = tuple(takewhile(lambda stage: stage.asks is None, STAGES))
"""Stages up to the index, the tasks and the questions: those before the first that asks a language
model.
"""

LLM_STAGES = tuple(stage for stage in STAGES if stage.asks is not None)
"""Stages that ask a language model."""

LLM_STAGE_NAMES = frozenset(stage.name for stage in LLM_STAGES)

JUDGING_STAGES = tuple(stage for stage in LLM_STAGES if stage.asks == "judge")
"""Stages that ask a judge, a language model too."""


def writer_models(settings: Settings) -> list[str]:
    """The names of the models that the writers of CITELOOM_SYSTEMS and CITELOOM_ANSWER_SYSTEMS
    call, and of the default model. Raises SettingError for an unknown system.
    """
    return sorted(_called_models(settings) | {settings.llm_model})


def calls_model(settings: Settings) -> bool:
    """Whether a run calls a language model, to write or to judge. Raises as `writer_models`
    does.
    """
    judging = [stage for stage in (G_SCORES, ANSWER_GRADES) if not stage.disabled_reason(settings)]
    return bool(judging or _called_models(settings))


def _called_models(settings: Settings) -> set[str]:
    writers = [
        writer
        for writer, _ in (
            *RELATED_WORK_WRITERS.chosen(settings),
            *ANSWERING_WRITERS.chosen(settings),
        )
    ]
    return {writer.model for writer in writers if writer.model}


def stage_named(name: str, option: str = "the stage") -> Stage:
    """The stage that an option names. Raises SettingError for an unknown name."""
    return lookup({stage.name: stage for stage in STAGES}, name, option)


def choose_stages(until: str | None = None, select: Iterable[str] = ()) -> list[Stage]:
    """The stages of `select` alone, or every stage up to `until`, or all. Raises SettingError for
    an unknown name.
    """
    selected = [stage_named(name, "--select") for name in select]
    if selected:
        return [stage for stage in STAGES if stage in selected]
    return list(STAGES[: STAGES.index(stage_named(until, "--until")) + 1] if until else STAGES)
