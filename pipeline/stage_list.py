"""The list of all stages, in the order in which they run. Importing it is cheap: `pipeline.stages`
loads the stages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class StageEntry:
    """A stage by name, and what the Dagster UI shows of its asset.

    module: the module that holds the `Stage`, as a constant with the stage's name in capitals.
    group, description, kinds: of the asset.
    asks: a language model, as a writer or as a judge; None for a stage that calls none.
    takes_gpus: on a cluster, its step asks for CITELOOM_EMBEDDING_GPUS.
    """

    name: str
    module: str
    group: Literal["corpus", "search", "evaluation", "related_work", "answers"]
    description: str
    kinds: tuple[str, ...] = ("parquet",)
    asks: Literal["writer", "judge"] | None = None
    takes_gpus: bool = False


STAGE_LIST = (
    StageEntry(
        "dump_members",
        "pipeline.corpus.stages",
        group="corpus",
        description=(
            "Pages of the ar5iv zips, from their central directories, and loose pages beside them."
        ),
        kinds=("parquet", "zip"),
    ),
    StageEntry(
        "metadata",
        "pipeline.arxiv.metadata_stage",
        group="corpus",
        description=(
            "What arXiv says of each page's paper: from the snapshot or the newer harvest, then"
            " from the rate-limited API for the rest."
        ),
        kinds=("parquet", "arxiv"),
    ),
    StageEntry(
        "papers",
        "pipeline.corpus.stages",
        group="corpus",
        description=(
            "Computer-science papers, parsed from pages read in place in the zip, with what each"
            " lost.\n\nOther categories are left out before any HTML is read."
        ),
        kinds=("parquet", "html"),
    ),
    StageEntry(
        "passages",
        "pipeline.corpus.passages.stages",
        group="corpus",
        description=(
            "Passages of 20 to 300 words with title and section path: short neighbours of one"
            " section are packed, long ones split at sentence ends."
        ),
    ),
    StageEntry(
        "references",
        "pipeline.corpus.references.stages",
        group="corpus",
        description=(
            "Bibliography items, resolved to arXiv papers by identifier, by DOI, then by title and"
            " year."
        ),
    ),
    StageEntry(
        "citations",
        "pipeline.corpus.references.stages",
        group="corpus",
        description="Which paper cites which, and in which passages.",
    ),
    StageEntry(
        "embeddings",
        "pipeline.embedding.stages",
        group="search",
        description=(
            "Dense vectors of every passage, and of BGE-M3 sparse ones. Unchanged texts keep their"
            " vectors, and an interrupted month continues where it ended."
        ),
        kinds=("parquet", "torch"),
        takes_gpus=True,
    ),
    StageEntry(
        "index_receipts",
        "pipeline.index.stages",
        group="search",
        description=(
            "The month's points in the Qdrant collection, audited against the embeddings id by id."
        ),
        kinds=("parquet", "qdrant"),
    ),
    StageEntry(
        "retrieval_queries",
        "pipeline.evaluation.stages",
        group="evaluation",
        description=(
            "Sentences that cite papers of the corpus, without their citation markers: what a"
            " search is asked to find, with the answer known and no labeller needed."
        ),
    ),
    StageEntry(
        "retrieval_scores",
        "pipeline.evaluation.stages",
        group="evaluation",
        description=(
            "How well each way to search finds the papers that sentences cite: dense, lexical,"
            " sparse, fused and reranked, with intervals."
        ),
    ),
    StageEntry(
        "questions",
        "pipeline.answering.stages",
        group="answers",
        description=(
            "Questions of CITELOOM_QUESTIONS whose newest paper is of the month, with their gold"
            " claims."
        ),
    ),
    StageEntry(
        "related_work_tasks",
        "pipeline.related_work.tasks",
        group="related_work",
        description=(
            "Papers whose related work cites papers of the corpus; the section is taken out and is"
            " the gold text."
        ),
    ),
    StageEntry(
        "key_elements",
        "pipeline.related_work.stages",
        group="related_work",
        description="Seven key elements of every target and reference (ChatCite, figure 2).",
        kinds=("parquet", "openai"),
        asks="writer",
    ),
    StageEntry(
        "summaries",
        "pipeline.related_work.stages",
        group="related_work",
        description=(
            "The related work of every task by each writer of CITELOOM_SYSTEMS (ChatCite, its"
            " ablations, baselines), and sections written elsewhere, from the CSV file of"
            " CITELOOM_IMPORTED_SECTIONS."
        ),
        kinds=("parquet", "openai"),
        asks="writer",
    ),
    StageEntry(
        "g_scores",
        "pipeline.evaluation.stages",
        group="evaluation",
        description=(
            "The G-Score: six marks and a vote, all systems of a task in one conversation as the"
            " paper has it; and what the paper did not ask: other orders, one by one, a second"
            " judge."
        ),
        kinds=("parquet", "openai"),
        asks="judge",
    ),
    StageEntry(
        "citation_support",
        "pipeline.evaluation.stages",
        group="evaluation",
        description=(
            "Whether a cited work says what the citing sentence claims: a verdict with the words it"
            " rests on."
        ),
        kinds=("parquet", "openai"),
        asks="judge",
    ),
    StageEntry(
        "answers",
        "pipeline.answering.stages",
        group="answers",
        description=(
            "The answers of each writer of CITELOOM_ANSWER_SYSTEMS (arXivBot, WikiChat, the model"
            " alone), and answers made elsewhere, from the CSV file of CITELOOM_IMPORTED_ANSWERS."
        ),
        kinds=("parquet", "openai"),
        asks="writer",
    ),
    StageEntry(
        "answer_grades",
        "pipeline.evaluation.stages",
        group="answers",
        description=(
            "Every answer claim by claim: is it correct, and which gold claims does the answer"
            " hold?"
        ),
        kinds=("parquet", "openai"),
        asks="judge",
    ),
    StageEntry(
        "scores",
        "pipeline.evaluation.stages",
        group="evaluation",
        description=(
            "Every metric of every system on each task: ROUGE against the gold section, G-Score,"
            " citations."
        ),
    ),
    StageEntry(
        "answer_scores",
        "pipeline.evaluation.stages",
        group="answers",
        description=(
            "Factual and coverage shares of every answer, and how much of what it needed retrieval"
            " showed."
        ),
    ),
    StageEntry(
        "report",
        "pipeline.report.stages",
        group="evaluation",
        description="The month's report: a static folder of pages that works from disk.",
        kinds=("html",),
    ),
)

STAGE_NAMES = tuple(stage.name for stage in STAGE_LIST)

LLM_STAGE_NAMES = frozenset(stage.name for stage in STAGE_LIST if stage.asks is not None)
"""Names of the stages that ask a language model."""
