"""Exact rankings of papers for queries: by dense, lexical and sparse vectors, fused, and ranked
again.

Every passage is scored, a block of queries at a time; a paper's rank is that of its best passage.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pipeline import tables
from pipeline.embedding.lexical import lexical_query, lexical_rows
from pipeline.evaluation.retrieval.pool import Matrices, Pool
from pipeline.index.exact import SparseScores, fused_scores
from pipeline.index.fusion import Ranking as SearchRanking
from pipeline.index.papers import tables_of_papers

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipeline.embedding.embedder import Vectors
    from pipeline.engine.stage import Workspace
    from pipeline.index.rerank import Reranker

# Papers of a ranking that are looked at: the deepest that any metric sees.
DEPTH = 50
# Passages that a search for DEPTH hits fuses.
FUSED = SearchRanking(DEPTH).candidates
# Passages that are ranked again, the best of the fused ones: as many as a search for ten hits has
# ranked again.
RERANKED = 50
# 64 queries over 20,000 passages are 5 MB of scores.
BLOCK = 64

Ranking = list[int]
"""Numbers of papers, best first, at most DEPTH."""


@dataclass(frozen=True, slots=True, eq=False)
class Queries:
    """The queries' texts and vectors. own: number of the asking paper, -1 outside the pool."""

    texts: Sequence[str]
    own: Sequence[int]
    vectors: Sequence[Vectors]


@dataclass(frozen=True, slots=True, eq=False)
class Rankings:
    """A ranking for each query by each method, and the passages of the fused ones, best first.
    sparse: empty where the model makes no sparse vectors.
    """

    dense: list[Ranking] = field(default_factory=list)
    lexical: list[Ranking] = field(default_factory=list)
    sparse: list[Ranking] = field(default_factory=list)
    fused: list[Ranking] = field(default_factory=list)
    fused_passages: list[NDArray[np.int64]] = field(default_factory=list)


def rank(queries: Queries, pool: Pool, vectors: Matrices) -> Rankings:
    """Rankings of the pool's papers by the vectors of its passages."""
    import numpy as np

    rankings = Rankings()
    lexical = SparseScores(lexical_rows(pool.texts), idf=True)
    sparse = None if vectors.sparse is None else SparseScores(vectors.sparse, idf=False)
    for start in range(0, len(queries.texts), BLOCK):
        block = slice(start, start + BLOCK)
        dense = np.stack([query.dense for query in queries.vectors[block]]) @ vectors.dense.T
        by_words = lexical.of([lexical_query(text) for text in queries.texts[block]])
        for own, by_dense, words in zip(queries.own[block], dense, by_words, strict=True):
            fused = _without(fused_scores(by_dense, words) * pool.kind_weights, pool, own)
            best_fused = best(fused, pool.by_id, FUSED)
            rankings.dense.append(papers_by_score(_without(by_dense, pool, own), pool))
            rankings.lexical.append(
                papers_by_score(_without(only_positive(words), pool, own), pool)
            )
            rankings.fused.append(papers_in_order(best_fused, pool))
            rankings.fused_passages.append(best_fused)
        if sparse is not None:
            by_sparse = sparse.of([query.sparse for query in queries.vectors[block]])
            for own, scores in zip(queries.own[block], by_sparse, strict=True):
                rankings.sparse.append(
                    papers_by_score(_without(only_positive(scores), pool, own), pool)
                )
    return rankings


def only_positive(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    """The scores, minus infinity for those of 0: without a common term nothing is found."""
    import numpy as np

    return np.where(scores > 0, scores, np.float32(-np.inf)).astype(np.float32)


def _without(scores: NDArray[np.float32], pool: Pool, own: int) -> NDArray[np.float32]:
    """The scores, and minus infinity for the passages of the asking paper."""
    import numpy as np

    return np.where(pool.paper_of == own, np.float32(-np.inf), scores) if own >= 0 else scores


def best(scores: NDArray[np.float32], order: NDArray[np.int64], depth: int) -> NDArray[np.int64]:
    """Places of the `depth` best scores, best first, ties by `order`, without minus infinity."""
    import numpy as np

    if len(scores) > depth:
        least = np.partition(scores, len(scores) - depth)[len(scores) - depth]
        places = np.flatnonzero((scores >= least) & (scores > -np.inf))
    else:
        places = np.flatnonzero(scores > -np.inf)
    return places[np.lexsort((order[places], -scores[places]))][:depth]


def papers_by_score(scores: NDArray[np.float32], pool: Pool) -> Ranking:
    """Papers by their best passage's score; ties by identifier."""
    import numpy as np

    of_papers = np.maximum.reduceat(scores, pool.starts)
    return [int(paper) for paper in best(of_papers, np.arange(len(of_papers)), DEPTH)]


def papers_in_order(passages: NDArray[np.int64], pool: Pool) -> Ranking:
    """Papers in the order in which passages name them first."""
    return list(dict.fromkeys(pool.paper_of[passages].tolist()))[:DEPTH]


Score = Callable[[int, Sequence[int]], "NDArray[np.float32]"]
"""(number of a query, places of passages) → their scores, float32 of shape (places,)."""


def rank_again(rankings: Rankings, pool: Pool, score: Score) -> list[Ranking]:
    """The fused rankings, their best RERANKED passages reordered by `score`."""
    import numpy as np

    reranked = []
    for number, fused in enumerate(rankings.fused_passages):
        top, rest = fused[:RERANKED], fused[RERANKED:]
        scores = score(number, top.tolist()) if len(top) else np.empty(0, np.float32)
        reordered = top[np.lexsort((pool.by_id[top], -scores))]
        reranked.append(papers_in_order(np.concatenate([reordered, rest]), pool))
    return reranked


def by_cross_encoder(reranker: Reranker, queries: Sequence[str], texts: Sequence[str]) -> Score:
    """Scores by a model that reads the query and the passage's text together."""
    return lambda query, places: reranker.score(queries[query], [texts[place] for place in places])


def by_colbert(
    workspace: Workspace,
    pool: Pool,
    rankings: Rankings,
    queries: Sequence[NDArray[np.float32]],
    model: str,
) -> Score | str:
    """Scores by ColBERT's vectors (MaxSim: for each token of the query the best product with a
    token of the passage, summed; Khattab and Zaharia 2020), or what keeps them from being known.

    queries: float32 of shape (tokens, dimensions) each. The table is read once, a row group at a
    time, 300 MB of BGE-M3's vectors: those of 20,000 passages would be 12 GB.
    """
    import numpy as np

    queries_of: dict[int, list[int]] = defaultdict(list)
    for query, passages in enumerate(rankings.fused_passages):
        for place in passages[:RERANKED].tolist():
            queries_of[place].append(query)
    scores: dict[tuple[int, int], float] = {}
    for place, vectors in _colbert_vectors(workspace, pool, queries_of, model):
        for query in queries_of[place]:
            scores[query, place] = float((queries[query] @ vectors.T).max(axis=1).sum())
    lacking = [place for place in queries_of if (queries_of[place][0], place) not in scores]
    if lacking:
        return (
            f"{len(lacking)} of {len(queries_of)} passages to be ranked again have no ColBERT"
            " vectors in embeddings"
        )
    return lambda query, places: np.array([scores[query, place] for place in places], np.float32)


def _colbert_vectors(
    workspace: Workspace, pool: Pool, candidates: Collection[int], model: str
) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """(place in the pool, vectors of tokens) of those passages that have current ones."""
    import numpy as np

    places = {str(pool.rows[place]["passage_id"]): place for place in candidates}
    papers = {pool.rows[place]["arxiv_id"] for place in candidates}
    columns = ["passage_id", "model", "text_sha256", "colbert"]
    for part in tables_of_papers(workspace.root, tables.EMBEDDINGS, papers, columns):
        identifiers, models, digests = (part[name].to_pylist() for name in columns[:3])
        rows = zip(identifiers, models, digests, part["colbert"], strict=True)
        for identifier, model_of_row, digest, colbert in rows:
            place = places.get(identifier)
            if place is None or model_of_row != model or not colbert.is_valid:
                continue
            if digest == pool.rows[place]["text_sha256"]:
                tokens = colbert.values
                flat = tokens.flatten().to_numpy(zero_copy_only=False).astype(np.float32)
                yield place, flat.reshape(len(tokens), -1)
