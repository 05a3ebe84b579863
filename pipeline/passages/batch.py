"""Papers → passages by Arrow batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from pipeline.passages.pack import Passage, pack, with_ids
from pipeline.passages.text import Form, embedded_text, text_digest
from pipeline.storage.data_root import DataRoot
from pipeline.tables import PAPERS, PASSAGES

PAPER_COLUMNS = ["arxiv_id", "title", "authors", "abstract", "categories", "year", "blocks"]
# Of the paper, told of each of its passages.
_COPIED = ("arxiv_id", "title")


def passages_of(papers: pa.RecordBatch, form: Form = "sections") -> pa.RecordBatch:
    """The passages of papers, in their order: PAPER_COLUMNS of `papers` in, rows of `passages` out.

    form: of the texts that will be embedded, whose digests the rows hold.

    It reads nothing else and keeps nothing, so that batches may go to any number of processes.
    """
    found: list[Passage] = []
    ids: list[str] = []
    digests: list[str] = []
    counts: list[int] = []
    for paper in papers.to_pylist():
        packed = pack(paper)
        ids += (identifier for identifier, _ in with_ids(paper["arxiv_id"], packed))
        digests += (text_digest(embedded_text(paper["title"], part.section_path, part.text, form)) for part in packed)
        found += packed
        counts.append(len(packed))
    columns: dict[str, Any] = dict(zip(Passage._fields, zip(*found, strict=True), strict=False)) if found else {}
    columns |= {"passage_id": ids, "text_sha256": digests, "ordinal": [n for count in counts for n in range(count)]}
    rows = pa.array([row for row, count in enumerate(counts) for _ in range(count)], pa.int32())
    columns |= {name: papers.column(name).take(rows) for name in _COPIED}
    return pa.record_batch([_column(columns.get(field.name, ()), field) for field in PASSAGES.schema], PASSAGES.schema)


def passages_of_chunk(root: DataRoot, month: str, form: Form, chunk: Sequence[int]) -> pa.RecordBatch:
    """The passages of a row group of a month of `papers`, read by whichever process packs it; a chunk is one group."""
    (group,) = chunk
    return passages_of(root.group(PAPERS, month, group, PAPER_COLUMNS), form)


def _column(values: Any, field: pa.Field) -> pa.Array:
    return values if isinstance(values, pa.Array) else pa.array(values, field.type)
