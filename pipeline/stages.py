"""All stages, in the order in which they run."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile

from pipeline.answering.stages import ANSWERS, QUESTIONS
from pipeline.answering.systems import ANSWERING_WRITERS
from pipeline.arxiv.metadata_stage import METADATA
from pipeline.corpus.passages.stages import PASSAGES
from pipeline.corpus.references.stages import CITATIONS, REFERENCES
from pipeline.corpus.sources.stage import PAGES
from pipeline.corpus.stages import DUMP_MEMBERS, PAPERS
from pipeline.embedding.stages import EMBEDDINGS
from pipeline.engine.stage import Stage
from pipeline.engine.systems import lookup
from pipeline.evaluation.stages import (
    ANSWER_GRADES,
    ANSWER_SCORES,
    CITATION_SUPPORT,
    G_SCORES,
    SCORES,
)
from pipeline.index.stages import INDEX_RECEIPTS
from pipeline.related_work.stages import KEY_ELEMENTS, SUMMARIES
from pipeline.related_work.systems import RELATED_WORK_WRITERS
from pipeline.related_work.tasks import RELATED_WORK_TASKS
from pipeline.report.stages import REPORT
from pipeline.settings import Settings
from pipeline.stage_names import plain_name

STAGES: tuple[Stage, ...] = (
    PAGES,
    DUMP_MEMBERS,
    METADATA,
    PAPERS,
    PASSAGES,
    REFERENCES,
    CITATIONS,
    EMBEDDINGS,
    INDEX_RECEIPTS,
    QUESTIONS,
    RELATED_WORK_TASKS,
    KEY_ELEMENTS,
    SUMMARIES,
    G_SCORES,
    CITATION_SUPPORT,
    ANSWERS,
    ANSWER_GRADES,
    SCORES,
    ANSWER_SCORES,
    REPORT,
)
"""Each after what it reads, and corpus stages before the first that asks a language model."""

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
