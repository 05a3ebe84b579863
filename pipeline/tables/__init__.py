"""Every table, once: its schema, what a row is, and the version of that contract."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.tables.answering import (
    ANSWER_GRADES,
    ANSWER_SCORES,
    ANSWERING_SYSTEMS,
    ANSWERS,
    HUMAN_GRADES,
    QUESTION_DRAFTS,
    QUESTIONS,
)
from pipeline.tables.corpus import (
    BLOCK,
    CHANGES,
    CITATIONS,
    DUMP_MEMBERS,
    EMBEDDINGS,
    GRADES,
    INDEX_RECEIPTS,
    LEDGER,
    METADATA,
    PAPERS,
    PASSAGES,
    REFERENCES,
    REPORT,
    RETRIEVAL_QUERIES,
    RETRIEVAL_SCORES,
)
from pipeline.tables.related_work import (
    CITATION_SUPPORT,
    CRITERIA,
    G_SCORES,
    HUMAN_RATINGS,
    KEY_ELEMENTS,
    RELATED_WORK_SYSTEMS,
    RELATED_WORK_TASKS,
    SCORES,
    STABILITY,
    SUMMARIES,
)
from pipeline.tables.table import TEXT, TEXTS, Table
from pipeline.tables.writers import (
    Writer,
    by_system,
    full_name,
    parse_writer,
    short_names,
    with_shown_name,
    with_writer_names,
    writer_name,
    writer_of,
)

TABLES: Mapping[str, Table] = {
    table.name: table
    for table in (
        DUMP_MEMBERS, METADATA, PAPERS, PASSAGES, REFERENCES, CITATIONS, EMBEDDINGS, INDEX_RECEIPTS, RETRIEVAL_QUERIES,
        RETRIEVAL_SCORES, RELATED_WORK_TASKS, KEY_ELEMENTS, SUMMARIES, G_SCORES, CITATION_SUPPORT,
        STABILITY, SCORES, HUMAN_RATINGS, HUMAN_GRADES, QUESTIONS, QUESTION_DRAFTS, ANSWERS,
        ANSWER_GRADES, ANSWER_SCORES, REPORT, CHANGES, LEDGER,
    )
}  # fmt: skip

__all__ = [
    "ANSWERING_SYSTEMS",
    "ANSWERS",
    "ANSWER_GRADES",
    "ANSWER_SCORES",
    "BLOCK",
    "CHANGES",
    "CITATIONS",
    "CITATION_SUPPORT",
    "CRITERIA",
    "DUMP_MEMBERS",
    "EMBEDDINGS",
    "GRADES",
    "G_SCORES",
    "HUMAN_GRADES",
    "HUMAN_RATINGS",
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
    "STABILITY",
    "SUMMARIES",
    "TABLES",
    "TEXT",
    "TEXTS",
    "Table",
    "Writer",
    "by_system",
    "full_name",
    "parse_writer",
    "short_names",
    "with_shown_name",
    "with_writer_names",
    "writer_name",
    "writer_of",
]
