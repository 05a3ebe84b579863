"""All stages as assets, in the order in which Dagster lists them."""

from __future__ import annotations

from typing import Any

from assets.details import (
    page_figures,
    paper_figures,
    passage_figures,
    report_details,
    retrieval_details,
    score_means,
)
from assets.stage_asset import StageAsset, writer_settings
from pipeline.answering.stages import ANSWERS, QUESTIONS
from pipeline.answering.systems import ANSWERING_WRITERS
from pipeline.arxiv.metadata_stage import METADATA
from pipeline.corpus.passages.stages import PASSAGES
from pipeline.corpus.references.stages import CITATIONS, REFERENCES
from pipeline.corpus.stages import DUMP_MEMBERS, PAPERS
from pipeline.embedding.stages import EMBEDDINGS
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
from pipeline.llm.models import settings_for
from pipeline.related_work.stages import KEY_ELEMENTS, SUMMARIES, element_models, repeat_settings
from pipeline.related_work.systems import RELATED_WORK_WRITERS
from pipeline.related_work.tasks import RELATED_WORK_TASKS
from pipeline.report.stages import REPORT
from pipeline.settings import Settings


def _element_settings(settings: Settings) -> dict[str, Any]:
    """The longest key element of each model that extracts them."""
    return {model: settings_for(settings, model).element_tokens for model in element_models(settings)}


def _summary_settings(settings: Settings) -> dict[str, Any]:
    chosen = RELATED_WORK_WRITERS.chosen(settings)
    repeats = {f"{writer.name} repeats": repeat_settings(system, settings) for writer, system in chosen}
    return {**writer_settings(chosen, settings), **repeats, "imported": settings.imported_sections}


def _answer_settings(settings: Settings) -> dict[str, Any]:
    return {**writer_settings(ANSWERING_WRITERS.chosen(settings), settings), "imported": settings.imported_answers}


STAGE_ASSETS = (
    StageAsset(
        DUMP_MEMBERS,
        "corpus",
        "Pages of the ar5iv zips, from their central directories, and loose pages beside them.",
        kinds=("parquet", "zip"),
        details=page_figures,
    ),
    StageAsset(
        METADATA,
        "corpus",
        "What arXiv says of each page's paper: from the snapshot or the newer harvest, then from the rate-limited API "
        "for the rest.",
        kinds=("parquet", "arxiv"),
    ),
    StageAsset(
        PAPERS,
        "corpus",
        "Computer-science papers, parsed from pages read in place in the zip, with what each lost.\n\n"
        "Other categories are left out before any HTML is read.",
        kinds=("parquet", "html"),
        details=paper_figures,
    ),
    StageAsset(
        PASSAGES,
        "corpus",
        "Passages of 20 to 300 words with title and section path: short neighbours of one section are packed, long "
        "ones split at sentence ends.",
        details=passage_figures,
    ),
    StageAsset(
        REFERENCES,
        "corpus",
        "Bibliography items, resolved to arXiv papers by identifier, by DOI, then by title and year.",
    ),
    StageAsset(
        CITATIONS,
        "corpus",
        "Which paper cites which, and in which passages.",
    ),
    StageAsset(
        EMBEDDINGS,
        "search",
        "Dense vectors of every passage, and of BGE-M3 sparse ones. Unchanged texts keep their vectors, and an "
        "interrupted month continues where it ended.",
        kinds=("parquet", "torch"),
        takes_gpus=True,
    ),
    StageAsset(
        INDEX_RECEIPTS,
        "search",
        "The month's points in the Qdrant collection, audited against the embeddings id by id.",
        kinds=("parquet", "qdrant"),
    ),
    StageAsset(
        RETRIEVAL_QUERIES,
        "evaluation",
        "Sentences that cite papers of the corpus, without their citation markers: what a search is asked to find, "
        "with the answer known and no labeller needed.",
    ),
    StageAsset(
        RETRIEVAL_SCORES,
        "evaluation",
        "How well each way to search finds the papers that sentences cite: dense, lexical, sparse, fused and reranked, "
        "with intervals.",
        details=retrieval_details,
    ),
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
    StageAsset(
        G_SCORES,
        "evaluation",
        "The G-Score: six marks and a vote, all systems of a task in one conversation as the paper has it; and what "
        "the paper did not ask: other orders, one by one, a second judge.",
        kinds=("parquet", "openai"),
    ),
    StageAsset(
        CITATION_SUPPORT,
        "evaluation",
        "Whether a cited work says what the citing sentence claims: a verdict with the words it rests on.",
        kinds=("parquet", "openai"),
    ),
    StageAsset(
        SCORES,
        "evaluation",
        "Every metric of every system on each task: ROUGE against the gold section, G-Score, citations.",
        details=score_means,
    ),
    StageAsset(
        REPORT,
        "evaluation",
        "The month's report: a static folder of pages that works from disk.",
        kinds=("html",),
        details=report_details,
    ),
    StageAsset(
        QUESTIONS,
        "answers",
        "Questions of CITELOOM_QUESTIONS whose newest paper is of the month, with their gold claims.",
    ),
    StageAsset(
        ANSWERS,
        "answers",
        "The answers of each writer of CITELOOM_ANSWER_SYSTEMS (arXivBot, WikiChat, the model alone), and answers made "
        "elsewhere, from the CSV file of CITELOOM_IMPORTED_ANSWERS.",
        kinds=("parquet", "openai"),
        part_settings=_answer_settings,
    ),
    StageAsset(
        ANSWER_GRADES,
        "answers",
        "Every answer claim by claim: is it correct, and which gold claims does the answer hold?",
        kinds=("parquet", "openai"),
    ),
    StageAsset(
        ANSWER_SCORES,
        "answers",
        "Factual and coverage shares of every answer, and how much of what it needed retrieval showed.",
    ),
)
