"""Exact scores of passages in memory, equal to those of an index: for evaluation, and for search
within a paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pipeline.embedding.lexical import lexical_query, lexical_rows
from pipeline.embedding.packing import offsets_of, spans
from pipeline.index.fusion import DENSE_WEIGHT

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipeline.embedding.embedder import SparseRows, SparseVector


class SparseScores:
    """Scores of passages by their sparse vectors.

    idf: whether terms are weighed by inverse document frequency, as Qdrant's modifier does:
    ln((N - n + 0.5) / (n + 0.5) + 1), where n of N passages have the term (Qdrant's documentation,
    "IDF Modifier").
    """

    def __init__(self, passages: SparseRows, *, idf: bool) -> None:
        import numpy as np

        self._count = len(passages)
        # Ids are 32-bit numbers; those of one term lie together, as in an inverted index.
        self._ids, terms, self._having = np.unique(
            passages.ids, return_inverse=True, return_counts=True
        )
        order = np.argsort(terms, kind="stable")
        self._starts = offsets_of(self._having)[:-1]
        self._passages = np.repeat(np.arange(self._count), passages.lengths)[order]
        self._weights = passages.weights[order]
        self._idf = (
            np.log((self._count - self._having + 0.5) / (self._having + 0.5) + 1)
            if idf
            else np.ones(len(self._ids))
        )

    def of(self, queries: Sequence[SparseVector]) -> NDArray[np.float32]:
        """The scores, of shape (queries, passages); 0 where no term is shared."""
        import numpy as np

        scores = np.zeros((len(queries), self._count), np.float32)
        for number, query in enumerate(queries):
            places = np.searchsorted(self._ids, query.ids)
            is_known = np.searchsorted(self._ids, query.ids, side="right") > places
            terms = places[is_known]
            entries = spans(self._starts[terms], self._having[terms])
            weights = np.repeat(query.weights[is_known] * self._idf[terms], self._having[terms])
            scores[number] = np.bincount(
                self._passages[entries], weights * self._weights[entries], self._count
            )
        return scores


def lexical_scores(texts: Sequence[str], queries: Sequence[str]) -> NDArray[np.float32]:
    """BM25 of each text for each query, of shape (queries, texts); the texts are the collection."""
    vectors = [lexical_query(query) for query in queries]
    terms = {number for vector in vectors for number in vector.ids.tolist()}
    return SparseScores(lexical_rows(texts, only=terms), idf=True).of(vectors)


def fused_scores(dense: NDArray[np.float32], lexical: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scores of one query's passages by both, as `fusion.fuse_scores` adds them; without the
    weights of kinds.
    """
    import numpy as np

    scores = np.zeros(len(dense), np.float32)
    for weight, part in ((DENSE_WEIGHT, dense), (1 - DENSE_WEIGHT, lexical)):
        best = float(part.max(initial=0.0))
        if best > 0:
            scores += np.float32(weight / best) * part
    return scores
