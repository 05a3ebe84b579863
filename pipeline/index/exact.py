"""Exact scores of passages in memory, equal to those of an index: for evaluation, and for search
within a paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pipeline.embedding.lexical import lexical_query, lexical_rows
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
        from scipy.sparse import csr_matrix

        self._count = len(passages)
        # Ids are 32-bit numbers: columns are the ids that there are.
        self._ids, columns = np.unique(passages.ids, return_inverse=True)
        shape = (self._count, len(self._ids))
        self._by_term = csr_matrix(
            (passages.weights, columns, passages.offsets), shape=shape
        ).T.tocsr()
        having = np.diff(self._by_term.indptr)
        self._idf = (
            np.log((self._count - having + 0.5) / (having + 0.5) + 1)
            if idf
            else np.ones(len(self._ids))
        )

    def of(self, queries: Sequence[SparseVector]) -> NDArray[np.float32]:
        """The scores, of shape (queries, passages); 0 where no term is shared."""
        import numpy as np
        from scipy.sparse import csr_matrix

        rows, columns, weights = [], [], []
        for number, query in enumerate(queries):
            places = np.searchsorted(self._ids, query.ids)
            is_indexed = places < len(self._ids)
            is_indexed[is_indexed] = self._ids[places[is_indexed]] == query.ids[is_indexed]
            columns.append(places[is_indexed])
            weights.append(query.weights[is_indexed] * self._idf[places[is_indexed]])
            rows.append(np.full(int(is_indexed.sum()), number))
        if not rows:
            return np.zeros((0, self._count), np.float32)
        cells = (np.concatenate(weights), (np.concatenate(rows), np.concatenate(columns)))
        matrix = csr_matrix(cells, shape=(len(queries), len(self._ids)))
        scores: NDArray[np.float32] = (matrix @ self._by_term).toarray().astype(np.float32)
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
