"""Exact rankings of papers for queries: by dense vectors, sparse vectors, both fused, and BM25; and reranked ones.

Every passage is scored, a block of queries at a time; a paper's rank is that of its best passage.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.evaluation.retrieval.pool import Pool
from pipeline.evaluation.retrieval.vectors import Matrices
from pipeline.index.passage_index import RRF_K, Request

if TYPE_CHECKING:
    import numpy as np
    from bm25s import BM25
    from numpy.typing import NDArray
    from scipy.sparse import csr_matrix

# Papers of a ranking that are looked at: the deepest that any metric sees.
DEPTH = 50
# Passages of each list that are fused, as a search for DEPTH hits has them.
FUSED = Request(DEPTH).candidates
# Passages that are ranked again, the best of the fused ones: as many as a search for ten hits has ranked again.
RERANKED = 50
# 64 queries over 20,000 passages are 5 MB of scores.
BLOCK = 64

# bm25s's own constants. Words as scikit-learn finds them, without its list of English stop words, stemmed (Snowball).
BM25_K1, BM25_B = 1.5, 0.75
BM25_NAME = f"BM25 (bm25s, lucene, k1 {BM25_K1}, b {BM25_B}, English stems)"

Ranking = list[int]
"""Numbers of papers, best first, at most DEPTH."""


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """The queries: what they ask, and the number of the paper that asks, -1 where it is not in the pool."""

    texts: Sequence[str]
    own: Sequence[int]
    vectors: Matrices


@dataclass(frozen=True, slots=True, eq=False)
class Hybrid:
    """The rankings by vectors, and the passages of the fused ones, best first, for whoever ranks them again."""

    dense: list[Ranking]
    sparse: list[Ranking]
    fused: list[Ranking]
    fused_passages: list[NDArray[np.int64]]


def idf(sparse: csr_matrix) -> NDArray[np.float32]:
    """Inverse document frequency of every column, as Qdrant's IDF modifier has it: ln((N - n + 0.5)/(n + 0.5) + 1).

    N is the number of rows, n how many of them have the column (Qdrant's documentation, "IDF Modifier").
    """
    import numpy as np

    total = sparse.shape[0]
    having = np.bincount(sparse.indices, minlength=sparse.shape[1])
    return np.asarray(np.log((total - having + 0.5) / (having + 0.5) + 1), np.float32)


def rank_by_vectors(asked: Asked, pool: Pool, vectors: Matrices, *, sparse_idf: bool) -> Hybrid:
    """Rankings by dense and by sparse vectors, and of both fused by rank. sparse_idf: as the embedder says."""
    found = Hybrid([], [], [], [])
    width = max(vectors.sparse.shape[1], asked.vectors.sparse.shape[1])
    passages, queries = _widened(vectors.sparse, width), _widened(asked.vectors.sparse, width)
    if sparse_idf:
        queries = queries.multiply(idf(passages)).tocsr()
    columns = passages.T.tocsr()  # once: the product would else lay them out again for every block
    for block in _blocks(len(asked.texts)):
        dense = asked.vectors.dense[block] @ vectors.dense.T
        sparse = only_positive((queries[block] @ columns).toarray())
        for query, by_dense, by_sparse in zip(asked.own[block], dense, sparse, strict=True):
            _without(by_dense, pool, query)
            _without(by_sparse, pool, query)
            fused = fuse([best(each, pool.by_id, FUSED) for each in (by_dense, by_sparse)], pool.by_id)
            found.dense.append(papers_by_score(by_dense, pool))
            found.sparse.append(papers_by_score(by_sparse, pool))
            found.fused.append(papers_in_order(fused, pool))
            found.fused_passages.append(fused)
    return found


def _blocks(count: int) -> Iterator[slice]:
    return (slice(start, start + BLOCK) for start in range(0, count, BLOCK))


def _widened(matrix: csr_matrix, width: int) -> csr_matrix:
    from scipy.sparse import csr_matrix

    return csr_matrix((matrix.data, matrix.indices, matrix.indptr), shape=(matrix.shape[0], width))


def only_positive(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scores, and minus infinity where there is none: what shares no term with the query is not found."""
    import numpy as np

    return np.where(scores > 0, scores, np.float32(-np.inf)).astype(np.float32)


def _without(scores: NDArray[np.float32], pool: Pool, own: int) -> None:
    """Take the passages of the asking paper out of the running."""
    if own >= 0:
        scores[pool.paper_of == own] = -float("inf")


def best(scores: NDArray[np.float32], order: NDArray[np.int64], depth: int) -> NDArray[np.int64]:
    """Places of the best `depth` scores, best first, ties by `order`; places of minus infinity are never among them."""
    import numpy as np

    if len(scores) > depth:
        least = np.partition(scores, len(scores) - depth)[len(scores) - depth]
        places = np.flatnonzero((scores >= least) & (scores > -np.inf))
    else:
        places = np.flatnonzero(scores > -np.inf)
    return places[np.lexsort((order[places], -scores[places]))][:depth]


def fuse(lists: Sequence[NDArray[np.int64]], order: NDArray[np.int64]) -> NDArray[np.int64]:
    """Lists of places as one, by reciprocal ranks: the sum of 1 / (RRF_K + place in the list, from 0), as Qdrant counts
    (seen of Edge 0.9: first of one list and fifth of the other score 1/60 + 1/64). Ties by `order`."""
    import numpy as np

    places, where = np.unique(np.concatenate(lists), return_inverse=True)
    shares = np.concatenate([1.0 / (RRF_K + np.arange(len(each))) for each in lists])
    scores = np.bincount(where, weights=shares, minlength=len(places))
    return places[np.lexsort((order[places], -scores))]


def papers_by_score(scores: NDArray[np.float32], pool: Pool) -> Ranking:
    """Papers by their best passage's score; ties by identifier."""
    import numpy as np

    of_papers = np.maximum.reduceat(scores, pool.starts)
    return [int(paper) for paper in best(of_papers, np.arange(len(of_papers)), DEPTH)]


def papers_in_order(passages: NDArray[np.int64], pool: Pool) -> Ranking:
    """Papers in the order in which passages name them first."""
    return list(dict.fromkeys(pool.paper_of[passages].tolist()))[:DEPTH]


def rank_by_bm25(asked: Asked, pool: Pool, texts: Sequence[str]) -> list[Ranking]:
    """Rankings by BM25 over the pool's texts in one form."""
    import numpy as np

    index = bm25_index(terms(texts))
    found = []
    for words, own in zip(terms(asked.texts), asked.own, strict=True):
        known = index.get_tokens_ids(words)
        scores = index.get_scores_from_ids(known) if known else np.zeros(len(pool), np.float32)
        scores = only_positive(scores)
        _without(scores, pool, own)
        found.append(papers_by_score(scores, pool))
    return found


def bm25_index(words: Sequence[Sequence[str]]) -> BM25:
    """An index of texts, each its words as `terms` gives them; at least one must have any."""
    import bm25s

    # The package sets its own logger to DEBUG, and every index that it builds would be told to the user.
    logging.getLogger("bm25s").setLevel(logging.WARNING)
    index = bm25s.BM25(k1=BM25_K1, b=BM25_B, method="lucene")
    index.index(words, show_progress=False)
    return index


def terms(texts: Sequence[str]) -> list[list[str]]:
    """The words of each text as BM25 counts them: stemmed, English stop words left out."""
    import bm25s
    import Stemmer

    stemmer = Stemmer.Stemmer("english")
    found: list[list[str]] = bm25s.tokenize(
        list(texts), stopwords="en", stemmer=stemmer, return_ids=False, show_progress=False
    )
    return found


Score = Callable[[int, Sequence[int]], "NDArray[np.float32]"]
"""(number of a query, places of passages) → their scores, float32 of shape (places,)."""


def rank_again(hybrid: Hybrid, pool: Pool, score: Score) -> list[Ranking]:
    """The fused rankings with their best RERANKED passages in the order of `score`; the others stay behind them."""
    import numpy as np

    found = []
    for number, fused in enumerate(hybrid.fused_passages):
        top, rest = fused[:RERANKED], fused[RERANKED:]
        scores = score(number, top.tolist()) if len(top) else np.empty(0, np.float32)
        found.append(papers_in_order(np.concatenate([top[np.lexsort((pool.by_id[top], -scores))], rest]), pool))
    return found
