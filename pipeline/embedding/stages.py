"""The table embeddings: every passage of a month, with its vectors.

Not here: models (`minilm`, `bge_m3`), and loading vectors into an index (`pipeline.index.stages`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from pipeline import tables
from pipeline.embedding.choice import make_embedder, model_name
from pipeline.embedding.embedder import Embedder, Vectors
from pipeline.embedding.reuse import PreviousVectors
from pipeline.passages.text import embedded_text
from pipeline.stages import Job, Stage, Workspace

if TYPE_CHECKING:
    from pipeline.tables import Row

# Passages encoded together: enough to form batches of like length for a GPU, little enough to hold (with ColBERT
# vectors, 256 passages of 300 tokens are 300 MB of float32).
WINDOW = 256

_PASSAGE_COLUMNS = ["passage_id", "arxiv_id", "title", "section_path", "text", "text_sha256"]


def build_embeddings(job: Job) -> Iterator[Row]:
    """Rows of embeddings, in the order of passages.

    The vectors of a passage whose text and model are those of the month's previous file are taken from it, so a
    month that grew by a paper costs one paper. Raises SettingError where the model is not there.
    """
    embedder = make_embedder(job.settings)
    file = None if job.force else job.workspace.root.file(tables.EMBEDDINGS, job.month)
    previous = PreviousVectors(file, embedder.name, _colbert(job))
    counts = {"reused": 0, "truncated": 0}
    for window in _windows(job.iterate(tables.PASSAGES, _PASSAGE_COLUMNS)):
        for row in _rows(window, embedder, previous, counts):
            counts["truncated"] += row["truncated"]
            yield row
    job.measured["reused"] = counts["reused"]
    # What the index must know of the vectors, also where a month has none.
    job.notes.update(
        truncated=counts["truncated"],
        model=embedder.name,
        dimensions=embedder.dimensions,
        sparse_idf=embedder.sparse_idf,
    )


def _windows(rows: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    while window := list(islice(rows, WINDOW)):
        yield window


def _rows(
    window: Sequence[Mapping[str, Any]], embedder: Embedder, previous: PreviousVectors, counts: dict[str, int]
) -> Iterator[dict[str, Any]]:
    known = previous.find([(row["passage_id"], row["text_sha256"]) for row in window])
    fresh = [row for row in window if row["passage_id"] not in known]
    vectors = embedder.encode([embedded_text(row["title"], row["section_path"], row["text"]) for row in fresh])
    made = {row["passage_id"]: _columns(found) for row, found in zip(fresh, vectors, strict=True)}
    counts["reused"] += len(known)
    for row in window:
        identity = {name: row[name] for name in ("passage_id", "arxiv_id", "text_sha256")}
        yield identity | {"model": embedder.name} | (known.get(row["passage_id"]) or made[row["passage_id"]])


def _columns(vectors: Vectors) -> dict[str, Any]:
    """The vectors as the table keeps them: float16, whose error of 0.0005 is far below what ranks differ by."""
    import numpy as np

    return {
        "dense": vectors.dense.astype(np.float16),
        "sparse_ids": vectors.sparse_ids,
        "sparse_weights": vectors.sparse_weights,
        "colbert": None if vectors.colbert is None else list(vectors.colbert.astype(np.float16)),
        "truncated": vectors.truncated,
    }


def _colbert(job: Job) -> bool:
    return job.settings.embedder == "bge-m3" and job.settings.embedder_colbert


def _model(workspace: Workspace, month: str) -> Mapping[str, str]:
    """The model, and ColBERT where it is asked for and the model has it: settings of BGE-M3 leave MiniLM's rows be."""
    settings = workspace.settings
    colbert = settings.embedder == "bge-m3" and settings.embedder_colbert
    return {"model": model_name(settings), "vectors": "dense, sparse, colbert" if colbert else "dense, sparse"}


EMBEDDINGS = Stage(
    table=tables.EMBEDDINGS,
    build=build_embeddings,
    upstream=(tables.PASSAGES,),
    settings=("embedder",),
    inputs=_model,
)
