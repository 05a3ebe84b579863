"""A made-up corpus of a few papers that cite each other, and an embedder that counts words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline import tables
from pipeline.corpus.passages.text import Form, embedded_text
from pipeline.embedding.columns import vector_columns
from pipeline.embedding.embedder import EngineFacts, VectorBatch, Vectors
from pipeline.engine.stage import Workspace
from pipeline.text import text_digest
from tests.month_tables import write_table

MARCH, APRIL, MAY = "2024-03", "2024-04", "2024-05"
WORDS = (
    "quartz", "lantern", "harbor", "meadow", "violin", "copper", "glacier", "orchard", "sparrow",
    "candle", "marble", "thistle", "anchor", "saddle", "ribbon", "walnut", "falcon", "cobalt",
    "dune", "ember",
)  # fmt: skip


@dataclass
class WordEmbedder:
    """Counts of WORDS as the dense vector and as sparse weights; a token vector for each of them,
    where asked for.
    """

    name: str = "words"
    colbert: bool = False
    encoded: list[str] = field(default_factory=list)
    dimensions: int = len(WORDS)
    max_tokens: int = 512
    has_sparse: bool = True
    last_facts: EngineFacts | None = None

    def encode(self, texts: Sequence[str]) -> list[Vectors]:
        """Each text's vectors, float32."""
        return [self._vectors(text) for text in texts]

    encode_queries = encode

    def encode_stream(self, texts: Iterable[str]) -> Iterator[VectorBatch]:
        """One text at a time, and a note of it."""
        for text in texts:
            self.encoded.append(text)
            yield self._batch(self._vectors(text))

    def _vectors(self, text: str) -> Vectors:
        counts = np.array([text.lower().split().count(word) for word in WORDS], np.float32)
        ids = np.flatnonzero(counts).astype(np.uint32)
        dense = counts / max(float(np.linalg.norm(counts)), 1.0)
        tokens = (
            np.eye(len(WORDS), dtype=np.float32)[ids]
            if len(ids)
            else np.zeros((1, len(WORDS)), np.float32)
        )
        return Vectors(dense, ids, counts[ids], tokens if self.colbert else None, False)

    def _batch(self, found: Vectors) -> VectorBatch:
        tokens = found.colbert
        return VectorBatch(
            dense=found.dense[None].astype(np.float16),
            sparse_offsets=np.array([0, len(found.sparse_ids)], np.int32),
            sparse_ids=found.sparse_ids,
            sparse_weights=found.sparse_weights,
            colbert_offsets=None if tokens is None else np.array([0, len(tokens)], np.int32),
            colbert=None if tokens is None else tokens.astype(np.float16),
            truncated=np.array([False]),
            tokens=1,
        )


class Backwards:
    """A cross-encoder that likes best what comes last, and notes what it read."""

    def __init__(self) -> None:
        self.read: list[tuple[str, tuple[str, ...]]] = []

    def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Higher for later texts."""
        self.read.append((query, tuple(texts)))
        return np.arange(len(texts), dtype=np.float32)


@dataclass(frozen=True)
class Written:
    """A paper: its title, its passages as (kind, text), and what its keys are resolved to."""

    arxiv_id: str
    title: str
    passages: Sequence[tuple[str, str]]
    cites: Mapping[str, str] = field(default_factory=dict)


def write_papers(
    work: Workspace, month: str, papers: Sequence[Written], embedder: WordEmbedder | None = None
) -> None:
    """A month of the tables that the retrieval stages read."""
    form = work.settings.embedded_form
    passages = [row for paper in papers for row in passage_rows(paper, form)]
    write_table(work.root, tables.PASSAGES, month, passages)
    cited = [
        {"arxiv_id": paper.arxiv_id, "key": key, "cited_arxiv_id": its}
        for paper in papers
        for key, its in paper.cites.items()
    ]
    write_table(work.root, tables.REFERENCES, month, cited)
    maker = embedder or WordEmbedder()
    write_table(
        work.root, tables.EMBEDDINGS, month, [_embedding(row, maker, form) for row in passages]
    )


def passage_rows(paper: Written, form: Form) -> list[dict[str, Any]]:
    """The rows of `passages` of a paper."""
    return [
        {
            "passage_id": f"{paper.arxiv_id}-{number}",
            "arxiv_id": paper.arxiv_id,
            "ordinal": number,
            "kind": kind,
            "title": paper.title,
            "section_path": ["Section"],
            "text": text,
            "cited_keys": list(paper.cites) if "[@" in text else [],
            "text_sha256": text_digest(embedded_text(paper.title, ["Section"], text, form)),
        }
        for number, (kind, text) in enumerate(paper.passages)
    ]


def _embedding(row: Mapping[str, Any], embedder: WordEmbedder, form: Form) -> dict[str, Any]:
    silent = WordEmbedder(embedder.name, embedder.colbert)
    text = embedded_text(row["title"], row["section_path"], row["text"], form)
    vectors = vector_columns(next(silent.encode_stream([text]))).to_pylist()[0]
    identity = {name: row[name] for name in ("passage_id", "arxiv_id", "text_sha256")}
    return {**identity, "model": embedder.name, **vectors}


def small_corpus(
    work: Workspace, embedder: WordEmbedder | None = None, others: Sequence[Written] = ()
) -> None:
    """March holds four papers that nobody asks from; April two that cite three of them and each
    other, and others.
    """
    march = [
        Written(
            f"2403.0000{n}",
            f"On {WORDS[n]}",
            [("abstract", f"{WORDS[n]} {WORDS[n]} {WORDS[n + 4]} shine.")],
        )
        for n in range(4)
    ]
    write_papers(work, MARCH, march, embedder)
    asks = (
        "The quartz quartz shine holds under pressure [@a]. Many a lantern burns through stormy"
        " nights [@b; @c]."
    )
    asks_again = (
        "Every violin meadow resonates beautifully somewhere [@d]. Nobody cites anything in this"
        " sentence."
    )
    cites = {"a": "2403.00000", "b": "2403.00001", "c": "2404.00002"}
    april = [
        Written(
            "2404.00001",
            "Asking",
            [("paragraph", asks), ("abstract", "quartz lantern quartz.")],
            cites,
        ),
        Written(
            "2404.00002",
            "Also asking",
            [("paragraph", asks_again), ("list", "lantern harbor.")],
            {"d": "2403.00003"},
        ),
        *others,
    ]
    write_papers(work, APRIL, april, embedder)
