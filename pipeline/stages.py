"""The list of all stages."""

from __future__ import annotations

from collections.abc import Iterable

from pipeline.answering.stages import ANSWERS, QUESTIONS
from pipeline.answering.systems import ANSWERING_WRITERS
from pipeline.arxiv.metadata_stage import METADATA
from pipeline.corpus.passages.stages import PASSAGES
from pipeline.corpus.references.stages import CITATIONS, REFERENCES
from pipeline.corpus.stages import DUMP_MEMBERS, PAPERS
from pipeline.embedding.stages import EMBEDDINGS
from pipeline.engine.stage import Stage
from pipeline.engine.systems import lookup
from pipeline.evaluation.stages import (
    ANSWER_GRADES,
    ANSWER_SCORES,
    CITATION_SUPPORT,
    G_SCORES,
    RETRIEVAL_QUERIES,
    RETRIEVAL_SCORES,
    SCORES,
)
from pipeline.index.stages import INDEX_RECEIPTS
from pipeline.related_work.stages import KEY_ELEMENTS, SUMMARIES
from pipeline.related_work.systems import RELATED_WORK_WRITERS
from pipeline.related_work.tasks import RELATED_WORK_TASKS
from pipeline.report.stages import REPORT
from pipeline.settings import Settings

JUDGING_STAGES = (G_SCORES, CITATION_SUPPORT, ANSWER_GRADES)
"""Stages that ask a judge, a language model too."""

LLM_STAGES = (KEY_ELEMENTS, SUMMARIES, G_SCORES, CITATION_SUPPORT, ANSWERS, ANSWER_GRADES)
"""Stages that ask a language model."""


def writer_models(settings: Settings) -> list[str]:
    """The names of the models that the writers of CITELOOM_SYSTEMS and CITELOOM_ANSWER_SYSTEMS call, and of the default
    model. Raises SettingError for an unknown system."""
    return sorted(_called_models(settings) | {settings.llm_model})


def calls_model(settings: Settings) -> bool:
    """Whether a run calls a language model, to write or to judge. Raises as `writer_models` does."""
    judging = [stage for stage in (G_SCORES, ANSWER_GRADES) if not stage.disabled_reason(settings)]
    return bool(judging or _called_models(settings))


def _called_models(settings: Settings) -> set[str]:
    writers = [writer for writer, _ in (*RELATED_WORK_WRITERS.chosen(settings), *ANSWERING_WRITERS.chosen(settings))]
    return {writer.model for writer in writers if writer.model}


CORPUS_STAGES: tuple[Stage, ...] = (
    DUMP_MEMBERS,
    METADATA,
    PAPERS,
    PASSAGES,
    REFERENCES,
    CITATIONS,
    EMBEDDINGS,
    INDEX_RECEIPTS,
    RETRIEVAL_QUERIES,
    RETRIEVAL_SCORES,
    QUESTIONS,
    RELATED_WORK_TASKS,
)
"""Stages up to the index, the tasks and the questions: they ask no language model."""

STAGES: tuple[Stage, ...] = (*CORPUS_STAGES, *LLM_STAGES, SCORES, ANSWER_SCORES, REPORT)
"""All stages, in the order in which they run."""


def stage_named(name: str, option: str = "the stage") -> Stage:
    """The stage that an option names. Raises SettingError for an unknown name."""
    return lookup({stage.name: stage for stage in STAGES}, name, option)


def choose_stages(until: str | None = None, select: Iterable[str] = ()) -> list[Stage]:
    """The stages of `select` alone, or every stage up to `until`, or all. Raises SettingError for an unknown name."""
    chosen = [stage_named(name, "--select") for name in select]
    if chosen:
        return [stage for stage in STAGES if stage in chosen]
    return list(STAGES[: STAGES.index(stage_named(until, "--until")) + 1] if until else STAGES)
