"""The month's corpus as its page shows it: steps from the dump to the index, papers, lengths. Only what is no related
work.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline import tables
from pipeline.evaluation.retrieval.picture import RetrievalView, retrieval_view
from pipeline.report.figures import Bar
from pipeline.report.views import LeftOut, PaperLine, Step
from pipeline.storage.data_root import DataRoot
from pipeline.storage.provenance import read_provenance
from pipeline.storage.reading import read_table
from pipeline.tables import Table

# A month of the whole dump has 10,000 papers and more left out: a page of 1,000 lines is 0.5 MB and still scrolls.
MOST_LINES = 1_000

_STEPS: tuple[tuple[Table, str, str], ...] = (
    (tables.DUMP_MEMBERS, "In the dump", "page"),
    (tables.METADATA, "Known to arXiv", "paper"),
    (tables.PAPERS, "Of the chosen categories, and parsed", "paper"),
    (tables.PASSAGES, "Cut into passages", "passage"),
    (tables.EMBEDDINGS, "Embedded", "passage"),
    (tables.INDEX_RECEIPTS, "Found in the index", "passage"),
    (tables.REFERENCES, "References read", "reference"),
    (tables.RETRIEVAL_QUERIES, "Citing sentences made queries", "sentence"),
    (tables.RETRIEVAL_SCORES, "Ways to search measured", "score"),
    (tables.RELATED_WORK_TASKS, "Made a related-work task", "task"),
)
CORPUS_STAGES = tuple(table.name for table, *_ in _STEPS)
_PAPER_COLUMNS = [
    "arxiv_id", "title", "subset", "primary_category", "sections", "chars_seen", "chars_kept", "truncated",
]  # fmt: skip


def ledger_of(root: DataRoot, month: str, stages: Sequence[str]) -> list[LeftOut]:
    """All that these stages left out of a month, stage by stage, sorted within each."""
    found: list[LeftOut] = []
    for stage in stages:
        file = root.ledger_file(stage, month)
        if read_provenance(file) is not None:
            rows = read_table(file, columns=["subject", "reason", "detail"]).to_pylist()
            found.extend(sorted((_left_out(stage, row) for row in rows), key=_ledger_order))
    return found


def _left_out(stage: str, row: Mapping[str, Any]) -> LeftOut:
    return LeftOut(stage, row["subject"] or "", row["reason"] or "", row["detail"] or "")


def _ledger_order(item: LeftOut) -> tuple[str, str, str]:
    return item.subject, item.reason, item.detail


def reasons(ledger: Iterable[LeftOut], stage: str) -> tuple[tuple[str, int], ...]:
    """Reasons of a stage with their counts, the most frequent first."""
    counts = Counter(item.reason for item in ledger if item.stage == stage)
    return tuple(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def steps(root: DataRoot, month: str, ledger: Sequence[LeftOut]) -> list[Step]:
    """The corpus's way, step by step."""
    return [
        Step(name, counted, rows_out(root, month, table), reasons(ledger, table.name))
        for table, name, counted in _STEPS
    ]


def rows_out(root: DataRoot, month: str, table: Table) -> int:
    """Rows of a month; for the index the points found there; 0 where the month is not there."""
    written = read_provenance(root.file(table, month))
    if written is None:
        return 0
    if table is tables.INDEX_RECEIPTS:
        return sum(row["present"] for row in root.rows(table, month, ["present"]))
    return written.rows


def papers(root: DataRoot, month: str) -> list[PaperLine]:
    """One line per paper of a month, by identifier."""
    passages = _counts(root.read(tables.PASSAGES, month, ["arxiv_id"])["arxiv_id"])
    references = root.read(tables.REFERENCES, month, ["arxiv_id", "cited_arxiv_id"])
    resolved = references.filter(pc.is_valid(references["cited_arxiv_id"]))
    rows = root.iterate(tables.PAPERS, month, _PAPER_COLUMNS)
    return paper_lines(rows, passages, _counts(references["arxiv_id"]), _counts(resolved["arxiv_id"]))


def _counts(column: pa.ChunkedArray) -> dict[str, int]:
    return {pair["values"]: pair["counts"] for pair in pc.value_counts(column).to_pylist()}


def paper_lines(
    rows: Iterable[Mapping[str, Any]],
    passages: Mapping[str, int],
    references: Mapping[str, int],
    resolved: Mapping[str, int],
) -> list[PaperLine]:
    """One line per paper, by identifier; the mappings count by identifier."""
    lines = [_paper_line(row, passages, references, resolved) for row in rows]
    return sorted(lines, key=lambda line: line.arxiv_id)


def _paper_line(
    row: Mapping[str, Any], passages: Mapping[str, int], references: Mapping[str, int], resolved: Mapping[str, int]
) -> PaperLine:
    identifier = row["arxiv_id"]
    return PaperLine(
        arxiv_id=identifier,
        title=row["title"],
        subset=row["subset"],
        category=row["primary_category"],
        sections=len(row["sections"]),
        passages=passages.get(identifier, 0),
        references=references.get(identifier, 0),
        resolved=resolved.get(identifier, 0),
        kept=row["chars_kept"] / row["chars_seen"] if row["chars_seen"] else None,
        truncated=row["truncated"],
    )


def length_bars(words: Iterable[int], width: int = 20, last: int = 300) -> list[Bar]:
    """Passages by length: one bar per `width` words up to `last`, then one for what is longer; shares of the peak."""
    counts = Counter(min(number, last) // width for number in words)
    peak = max(counts.values(), default=0)
    if not peak:
        return []
    bins = range(last // width + 1)
    return [Bar(_bin_label(each, width, last), f"{counts[each]:,}", counts[each] / peak, 1) for each in bins]


def _bin_label(number: int, width: int, last: int) -> str:
    first = number * width
    return f"{first} words and more" if first >= last else f"{first} to {first + width - 1} words"


def retrieval(root: DataRoot, month: str) -> RetrievalView:
    """The month's retrieval scores as shown."""
    return retrieval_view(root.rows(tables.RETRIEVAL_SCORES, month), retrieval_notes(root, month))


def retrieval_notes(root: DataRoot, month: str) -> Mapping[str, Any]:
    """What the file of the scores says of the month: why something was not measured."""
    written = read_provenance(root.file(tables.RETRIEVAL_SCORES, month))
    return written.notes if written else {}
