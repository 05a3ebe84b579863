"""Every table, once: its schema, what a row is, and the version of that contract.

One module a topic; this one gathers them.
"""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.tables.answering import (
    ANSWER_CLAIM,
    ANSWER_GRADES,
    ANSWER_SCORES,
    ANSWER_SENTENCE,
    ANSWERING_SYSTEMS,
    ANSWERS,
    FOUND_PASSAGE,
    GOLD_CLAIM,
    GRADED_CLAIM,
    GRADED_GOLD,
    HUMAN_GRADES,
    IMPORTED,
    QUESTION_DRAFTS,
    QUESTIONS,
)
from pipeline.tables.corpus import (
    AUTHOR,
    BIBLIOGRAPHY_ITEM,
    BLOCK,
    DUMP_MEMBERS,
    GRADES,
    METADATA,
    PAPERS,
    PASSAGES,
    REFERENCES,
    SECTION,
)
from pipeline.tables.operations import CHANGES, LEDGER, REPORT
from pipeline.tables.related_work import (
    CITATION_SUPPORT,
    CRITERIA,
    G_MARKS,
    G_SCORES,
    HUMAN_RATINGS,
    KEY_ELEMENTS,
    RELATED_WORK_SYSTEMS,
    RELATED_WORK_TASKS,
    SCORES,
    SHOWN_PASSAGE,
    STABILITY,
    SUMMARIES,
    SUMMARY_SENTENCE,
    TASK_REFERENCE,
)
from pipeline.tables.search import EMBEDDINGS, INDEX_RECEIPTS, RETRIEVAL_QUERIES, RETRIEVAL_SCORES
from pipeline.tables.table import COUNT, FLAG, TEXT, TEXTS, Table

TABLES: Mapping[str, Table] = {
    table.name: table
    for table in (
        DUMP_MEMBERS, METADATA, PAPERS, PASSAGES, REFERENCES, EMBEDDINGS, INDEX_RECEIPTS, RETRIEVAL_QUERIES,
        RETRIEVAL_SCORES, RELATED_WORK_TASKS, KEY_ELEMENTS, *SUMMARIES.values(), G_SCORES, CITATION_SUPPORT,
        STABILITY, SCORES, HUMAN_RATINGS, HUMAN_GRADES, QUESTIONS, QUESTION_DRAFTS, *ANSWERS.values(),
        ANSWER_GRADES, ANSWER_SCORES, REPORT, CHANGES, LEDGER,
    )
}  # fmt: skip

__all__ = [
    "ANSWERING_SYSTEMS",
    "ANSWERS",
    "ANSWER_CLAIM",
    "ANSWER_GRADES",
    "ANSWER_SCORES",
    "ANSWER_SENTENCE",
    "AUTHOR",
    "BIBLIOGRAPHY_ITEM",
    "BLOCK",
    "CHANGES",
    "CITATION_SUPPORT",
    "COUNT",
    "CRITERIA",
    "DUMP_MEMBERS",
    "EMBEDDINGS",
    "FLAG",
    "FOUND_PASSAGE",
    "GOLD_CLAIM",
    "GRADED_CLAIM",
    "GRADED_GOLD",
    "GRADES",
    "G_MARKS",
    "G_SCORES",
    "HUMAN_GRADES",
    "HUMAN_RATINGS",
    "IMPORTED",
    "INDEX_RECEIPTS",
    "KEY_ELEMENTS",
    "LEDGER",
    "METADATA",
    "PAPERS",
    "PASSAGES",
    "QUESTIONS",
    "QUESTION_DRAFTS",
    "REFERENCES",
    "RELATED_WORK_SYSTEMS",
    "RELATED_WORK_TASKS",
    "REPORT",
    "RETRIEVAL_QUERIES",
    "RETRIEVAL_SCORES",
    "SCORES",
    "SECTION",
    "SHOWN_PASSAGE",
    "STABILITY",
    "SUMMARIES",
    "SUMMARY_SENTENCE",
    "TABLES",
    "TASK_REFERENCE",
    "TEXT",
    "TEXTS",
    "Table",
]
