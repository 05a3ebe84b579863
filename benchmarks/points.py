"""Points as an index meets them in life: tables of a month with the sample corpus's payload and
vectors with structure.

Passages are those of the sample corpus, its papers repeated under other ids and titles; their text
is left out, since no point holds it. A dense vector is a sum of what all texts share, and of normal
draws for its topic (power-law sizes), paper, section and itself, whose variances fall off as 1/j
over 1,024 axes, rotated. The sizes of these parts (`_COMMON` and below) were fitted to the MiniLM
vectors of 1,184 passages of 21 real papers:

                                        real, 384 dimensions    drawn, 1,024
    cosine of two passages              0.157 ± 0.159           0.166 ± 0.160
    of a passage and its 1st, 10th,
    100th neighbour (medians)           0.82, 0.70, 0.37        0.82, 0.62, 0.36
    local dimension of 20 neighbours    9.5 (5.8 to 16.7)       9.8 (6.3 to 17.6)
    axes for 50 % and 80 % of variance  12, 61                  11, 69

A sparse vector has 120 terms of BGE-M3's 250,002, drawn by Zipf's law. Never text, and no figure or
claim.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline import tables
from pipeline.corpus.passages.packing import passage_id
from pipeline.embedding.embedder import SparseVector
from pipeline.embedding.lexical import lexical_query
from pipeline.index.passage_index import Layout, Quantization, QueryVectors
from pipeline.storage.data_root import DataRoot
from pipeline.storage.provenance import Provenance
from pipeline.storage.writing import MonthWriter
from pipeline.tables import Table
from pipeline.text import text_digest

DIMENSIONS, TERMS, VOCABULARY = 1_024, 120, 250_002
QUERY_TERMS = 16
MODEL = "drawn"
# Standard deviations of a vector's parts, whose squares add up to about 1; of a passage's own part
# also how much its logarithm varies: some passages stand alone.
_COMMON, _TOPIC, _PAPER, _SECTION, _PASSAGE, _SPREAD = 0.4, 0.4, 0.5, 0.5, 0.5, 0.5
_TOPICS, _PASSAGES_OF_SECTION = 1_000, 5


def layout(quantization: Quantization = "int8") -> Layout:
    """The layout of a collection for these points: BGE-M3's, but for the name."""
    return Layout(MODEL, DIMENSIONS, sparse=True, quantization=quantization)


@dataclass(frozen=True)
class Structure:
    """Where the vectors come from; equal seeds give equal vectors."""

    seed: int = 0

    def passages(self, paper: int, count: int) -> NDArray[np.float32]:
        """A paper's passages before rotation, of shape (count, dimensions)."""
        draw = np.random.default_rng((self.seed, 1, paper))
        sections = np.arange(count) // _PASSAGES_OF_SECTION
        spread = np.exp(_SPREAD * draw.normal(size=(count, 1)))
        of_section = _SECTION * self._normal(draw, count)[sections]
        of_passage = _PASSAGE * spread * self._normal(draw, count)
        return (self._of_paper(paper) + (of_section + of_passage)).astype(np.float32)

    def questions(self, papers: Sequence[int]) -> NDArray[np.float32]:
        """Vectors of questions, one on each paper, partly of its topic and the paper."""
        rows = []
        for number, paper in enumerate(papers):
            own = self._normal(np.random.default_rng((self.seed, 2, paper, number)), 2)
            rows.append(self._of_paper(paper) + _SECTION * own[0] + _PASSAGE * own[1])
        return self.rotated(np.array(rows, np.float32))

    def rotated(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """Rows as they leave a model: all axes alike, all of unit length."""
        turned = rows @ self._rotation
        return np.asarray(turned / np.linalg.norm(turned, axis=1, keepdims=True), np.float32)

    def _of_paper(self, paper: int) -> NDArray[np.float64]:
        draw = np.random.default_rng((self.seed, 3, paper))
        topic = draw.choice(_TOPICS, p=self._topic_shares)
        of_topic = self._normal(np.random.default_rng((self.seed, 4, topic)), 1)[0]
        own = _PAPER * self._normal(draw, 1)[0]
        return np.asarray(self._common + _TOPIC * of_topic + own)

    def _normal(self, draw: np.random.Generator, count: int) -> NDArray[np.float64]:
        return draw.normal(size=(count, DIMENSIONS)) * self._deviations

    @cached_property
    def _deviations(self) -> NDArray[np.float64]:
        falling = np.arange(1, DIMENSIONS + 1) ** -0.5
        return np.asarray(falling / np.linalg.norm(falling))

    @cached_property
    def _common(self) -> NDArray[np.float64]:
        direction = np.random.default_rng((self.seed, 5)).normal(size=DIMENSIONS)
        return _COMMON * direction / np.linalg.norm(direction)

    @cached_property
    def _topic_shares(self) -> NDArray[np.float64]:
        sizes = 1 / np.arange(5, _TOPICS + 5)
        return np.asarray(sizes / sizes.sum())

    @cached_property
    def _rotation(self) -> NDArray[np.float32]:
        square = np.random.default_rng((self.seed, 6)).normal(size=(DIMENSIONS, DIMENSIONS))
        return np.linalg.qr(square)[0].astype(np.float32)


def terms(
    draw: np.random.Generator, texts: int, of_each: int
) -> tuple[NDArray[np.uint32], NDArray[np.float32]]:
    """Term ids, different and ascending within a text, and weights, both of shape (texts, of_each).

    The term of rank r comes with a chance of 1 / (r + 2.7), after Mandelbrot.
    """
    chances = np.cumsum(1 / (np.arange(VOCABULARY) + 2.7))
    drawn = np.searchsorted(chances, draw.random((texts, 4 * of_each)) * chances[-1])
    ids = np.empty((texts, of_each), np.uint32)
    for row, candidates in zip(ids, drawn, strict=True):
        _, first = np.unique(candidates, return_index=True)
        row[:] = np.sort(candidates[np.sort(first)[:of_each]])
    return ids, draw.gamma(2.0, 0.05, ids.shape).astype(np.float32)


# Words of the sample's passages, rare and frequent ones.
_WORDS = (
    "attention", "beam", "citation", "corpus", "decoder", "dense", "embedding", "encoder",
    "entropy", "graph", "hypothesis", "language", "latency", "lexical", "model", "passage",
    "ranking", "retrieval", "sentence", "training",
)  # fmt: skip


def questions(structure: Structure, papers: int, count: int) -> list[QueryVectors]:
    """Questions on papers of the corpus, of the sample's words; none of them is a point."""
    draw = np.random.default_rng((structure.seed, 7))
    dense = structure.questions(draw.integers(papers, size=count).tolist())
    ids, weights = terms(draw, count, QUERY_TERMS)
    return [
        QueryVectors(
            dense[row],
            lexical_query(" ".join(draw.choice(_WORDS, 6))),
            SparseVector(ids[row], weights[row]),
        )
        for row in range(count)
    ]


def write_months(root: DataRoot, months: Sequence[str], count: int, structure: Structure) -> int:
    """Write papers, passages and embeddings for `count` points over the months; how many papers."""
    sample = sample_papers()
    papers = 0
    for number, month in enumerate(months):
        share = count * (number + 1) // len(months) - count * number // len(months)
        papers += _write_month(root, month, share, papers, sample, structure)
    return papers


def sample_papers() -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """The sample corpus's papers, as far as points have to do with them, each with its passages."""
    from pipeline.engine.run import run_stage
    from pipeline.engine.stage import Workspace
    from pipeline.settings import load_settings
    from pipeline.stages import choose_stages

    wanted = ["arxiv_id", "subset", "categories", "primary_category", "grade"]
    found = []
    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace(
            load_settings(data=Path(folder), arxiv_api=False, workers=1, _env_file=None)
        )
        for month in ("2024-03", "2024-04", "2024-05"):
            for stage in choose_stages(until="passages"):
                run_stage(stage, workspace, month)
            passages = workspace.root.rows(tables.PASSAGES, month)
            for paper in workspace.root.rows(tables.PAPERS, month, wanted):
                own = [passage for passage in passages if passage["arxiv_id"] == paper["arxiv_id"]]
                found.append((paper, own))
    return found


def _write_month(
    root: DataRoot,
    month: str,
    count: int,
    first: int,
    sample: Sequence[tuple[dict[str, Any], list[dict[str, Any]]]],
    structure: Structure,
) -> int:
    """Write a month's three tables; how many papers it took. first: number of its first paper."""
    writers = {
        table: MonthWriter(table, root.file(table, month))
        for table in (tables.PAPERS, tables.PASSAGES)
    }
    with writers[tables.PAPERS] as papers, writers[tables.PASSAGES] as passages:
        rows: list[list[dict[str, Any]]] = []
        while (left := count - passages.added) > 0:
            paper, own = sample[len(rows) % len(sample)]
            arxiv_id = f"{month[2:4]}{month[5:]}.{len(rows) + 1:05d}"
            papers.add({**paper, "arxiv_id": arxiv_id, "year": int(month[:4])})
            rows.append([*_passages(arxiv_id, own[:left])])
            for row in rows[-1]:
                passages.add(row)
        papers.commit(_made(tables.PAPERS, month))
        passages.commit(_made(tables.PASSAGES, month))
    _write_embeddings(root, month, rows, first, structure)
    return len(rows)


def _passages(arxiv_id: str, sample: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """A paper's passages under another id."""
    parts: Counter[str] = Counter()
    for passage in sample:
        anchor = passage["anchor"]
        about = {
            "passage_id": passage_id(arxiv_id, anchor, parts[anchor]),
            "arxiv_id": arxiv_id,
            "title": f"{passage['title']}, {arxiv_id}",
            "text_sha256": text_digest(f"{arxiv_id} {passage['ordinal']}"),
        }
        parts[anchor] += 1
        yield {**passage, **about}


def _write_embeddings(
    root: DataRoot,
    month: str,
    papers: Sequence[Sequence[dict[str, Any]]],
    first: int,
    structure: Structure,
) -> None:
    """Vectors of the papers' passages, a hundred papers at a time."""
    draw = np.random.default_rng((structure.seed, 8, first))
    with MonthWriter(tables.EMBEDDINGS, root.file(tables.EMBEDDINGS, month)) as writer:
        for start in range(0, len(papers), 100):
            some = papers[start : start + 100]
            drawn = [
                structure.passages(first + start + number, len(own))
                for number, own in enumerate(some)
            ]
            dense = structure.rotated(np.concatenate(drawn))
            rows = [row for own in some for row in own]
            writer.add_batch(_embeddings(rows, dense, *terms(draw, len(dense), TERMS)))
        writer.commit(_made(tables.EMBEDDINGS, month))


def _embeddings(
    passages: Sequence[dict[str, Any]],
    dense: NDArray[np.float32],
    ids: NDArray[np.uint32],
    weights: NDArray[np.float32],
) -> pa.RecordBatch:
    schema, count = tables.EMBEDDINGS.schema, len(passages)
    identity = {
        name: pa.array([row[name] for row in passages])
        for name in ("passage_id", "arxiv_id", "text_sha256")
    }
    columns = identity | {
        "model": pa.array([MODEL] * count),
        "dense": _lists(dense.astype(np.float16)),
        "sparse_ids": _lists(ids),
        "sparse_weights": _lists(weights),
        "colbert": pa.nulls(count, schema.field("colbert").type),
        "truncated": pa.array([False] * count),
    }
    return pa.RecordBatch.from_arrays(
        [columns[name].cast(schema.field(name).type) for name in schema.names], schema=schema
    )


def _lists(matrix: NDArray[Any]) -> pa.ListArray:
    rows, width = matrix.shape
    return pa.ListArray.from_arrays(
        np.arange(rows + 1, dtype=np.int32) * width, pa.array(matrix.reshape(-1))
    )


def _made(table: Table, month: str) -> Provenance:
    """Provenance of a benchmark's file; embeddings state their model as the stage does."""
    found = layout()
    notes = {"model": MODEL, "dimensions": DIMENSIONS, "sparse": found.sparse, "form": found.form}
    return Provenance(
        table.name, month, table.version, 1, "0", "made by a benchmark", {}, {}, notes=notes
    )
