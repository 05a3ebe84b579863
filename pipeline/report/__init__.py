"""Static pages on a month and on all months, made from the tables."""

from pipeline import tables
from pipeline.storage.data_root import DataRoot
from pipeline.storage.store import DataPath

FUNNEL = (
    (tables.DUMP_MEMBERS, "In the dump", "page"),
    (tables.METADATA, "Known to arXiv", "paper"),
    (tables.PAPERS, "In the chosen categories and parsed", "paper"),
    (tables.PASSAGES, "Split into passages", "passage"),
    (tables.EMBEDDINGS, "Embedded", "passage"),
    (tables.INDEX_RECEIPTS, "Found in the index", "passage"),
    (tables.REFERENCES, "References read", "reference"),
    (tables.RELATED_WORK_TASKS, "Related-work tasks", "task"),
)
"""From the dump to the tasks of related work: table, what its rows are, and one of them."""
ANSWER_TABLES = (tables.QUESTIONS, tables.ANSWERS, tables.ANSWER_GRADES, tables.ANSWER_SCORES)
MODEL_TABLES = (
    tables.KEY_ELEMENTS,
    tables.SUMMARIES,
    tables.G_SCORES,
    tables.CITATION_SUPPORT,
    tables.SCORES,
    *ANSWER_TABLES,
)
UPSTREAM = (*(table for table, *_ in FUNNEL), *MODEL_TABLES)


def page_of_month(root: DataRoot, month: str) -> DataPath:
    """Where the first page of a month's report lies."""
    return root.path / "reports" / month / "index.html"
