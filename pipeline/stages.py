"""All stages, in the order in which they run.

The list is derived from `pipeline.tables.TABLES`: a table names the module of its stage, and the
stage is that module's constant with the table's name in capitals (see CONTRIBUTING.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from itertools import takewhile

from pipeline.answering.systems import ANSWERING_WRITERS
from pipeline.engine.stage import Stage
from pipeline.engine.systems import lookup
from pipeline.evaluation.stages import ANSWER_GRADES, G_SCORES
from pipeline.related_work.systems import RELATED_WORK_WRITERS
from pipeline.settings import Settings
from pipeline.stage_names import plain_name
from pipeline.tables import TABLES, Table


def _load_stage(table: Table, module: str) -> Stage:
    """The stage that makes a table. Raises TypeError where the module does not define it."""
    constant = table.name.upper()
    stage = getattr(import_module(module), constant, None)
    if not isinstance(stage, Stage) or stage.table != table:
        raise TypeError(
            f"{module}, the stage_module of the table {table.name}, must define its stage:"
            f" {constant} = Stage(table=tables.{constant}, …)"
        )
    return stage


STAGES: tuple[Stage, ...] = tuple(
    _load_stage(table, table.stage_module)
    for table in TABLES.values()
    if table.stage_module is not None
)
"""All stages, in the order in which they run."""

CORPUS_STAGES = tuple(takewhile(lambda stage: stage.asks is None, STAGES))
"""The stages before the first that asks a language model: up to the index, tasks and questions."""

LLM_STAGES = tuple(stage for stage in STAGES if stage.asks is not None)
"""The stages that ask a language model, as a writer or as a judge."""

LLM_STAGE_NAMES = frozenset(stage.name for stage in LLM_STAGES)

JUDGING_STAGES = tuple(stage for stage in LLM_STAGES if stage.asks == "judge")
"""The stages among them that ask a judge."""


def writer_models(settings: Settings) -> list[str]:
    """The default model, and those that CITELOOM_SYSTEMS and CITELOOM_ANSWER_SYSTEMS call.

    Raises SettingError for an unknown system.
    """
    return sorted(_called_models(settings) | {settings.llm_model})


def calls_model(settings: Settings) -> bool:
    """Whether a run calls a model, to write or to judge. Raises as `writer_models` does."""
    judging = [stage for stage in (G_SCORES, ANSWER_GRADES) if not stage.disabled_reason(settings)]
    return bool(judging or _called_models(settings))


def _called_models(settings: Settings) -> set[str]:
    writers = [*RELATED_WORK_WRITERS.lookup_all(settings), *ANSWERING_WRITERS.lookup_all(settings)]
    return {writer.model for writer, _ in writers if writer.model}


def lookup_stage(name: str, option: str = "the stage") -> Stage:
    """The stage that an option names, plainly or by its table. Raises SettingError for an unknown
    name.
    """
    stages = {plain_name(stage.name): stage for stage in STAGES}
    return lookup(stages, plain_name(name), option)


def choose_stages(until: str | None = None, select: Iterable[str] = ()) -> list[Stage]:
    """The stages of `select` alone, or every stage up to `until`, or all.

    Raises SettingError for an unknown name.
    """
    selected = [lookup_stage(name, "--select") for name in select]
    if selected:
        return [stage for stage in STAGES if stage in selected]
    if not until:
        return list(STAGES)
    last = STAGES.index(lookup_stage(until, "--until"))
    return list(STAGES[: last + 1])
