"""Exact rankings against what a test computes by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from pipeline.embedding.embedder import SparseRows, Vectors
from pipeline.evaluation.retrieval import rankings
from pipeline.evaluation.retrieval.pool import Matrices, Pool
from pipeline.evaluation.retrieval.rankings import Queries, Rankings, best, rank, rank_again
from pipeline.index.exact import fused_scores, lexical_scores
from tests.unit.evaluation.retrieval.corpus import WORDS

Floats = NDArray[np.float32]


def pool_of(*passages_of_each: int, texts: Sequence[str] = ()) -> Pool:
    """Papers with so many passages each; ids run against the order of the passages."""
    paper_of = np.repeat(np.arange(len(passages_of_each), dtype=np.int32), passages_of_each)
    rows = [
        {"passage_id": f"{999 - place}", "arxiv_id": f"p{paper}"}
        for place, paper in enumerate(paper_of)
    ]
    starts = np.searchsorted(paper_of, np.arange(len(passages_of_each)))
    number_of = {f"p{number}": number for number in range(len(passages_of_each))}
    by_id = np.arange(len(rows))[::-1].copy()
    return Pool(number_of, rows, texts, starts, paper_of, by_id, np.ones(len(rows), np.float32))


class Toy:
    """Random texts of a few words, and vectors that have nothing to do with them."""

    def __init__(self, seed: int, passages: int, queries: int) -> None:
        random = np.random.default_rng(seed)
        self.texts = [" ".join(random.choice(WORDS[:7], 5)) for _ in range(passages)]
        self.asked = [" ".join(random.choice(WORDS[:7], 2)) for _ in range(queries)]
        self.dense = random.standard_normal((passages, 6)).astype(np.float32)
        self.sparse = SparseRows.of(
            [{int(n): 1.0 + n for n in random.integers(0, 9, 2)} for _ in range(passages)]
        )
        self.vectors = [
            Vectors(
                dense,
                np.array([number % 9], np.uint32),
                np.ones(1, np.float32),
                None,
                truncated=False,
            )
            for number, dense in enumerate(random.standard_normal((queries, 6)).astype(np.float32))
        ]

    def queries(self, own: list[int]) -> Queries:
        """The queries, asked by these papers."""
        return Queries(self.asked, own, self.vectors)


def by_hand(scores: Floats, pool: Pool, own: int, found: bool) -> list[int]:
    """Papers by their best passage, one loop over all of them. found: whether a score of 0 is
    one.
    """
    top: dict[int, float] = {}
    for place, score in enumerate(scores):
        paper = int(pool.paper_of[place])
        if paper != own and (found or score > 0):
            top[paper] = max(top.get(paper, -math.inf), float(score))
    return sorted(top, key=lambda paper: (-top[paper], paper))[: rankings.DEPTH]


def test_rankings_are_those_of_a_loop_over_all_passages_without_the_asking_paper() -> None:
    toy = Toy(7, 330, 150)
    pool = pool_of(*([3, 1, 2, 5] * 30), texts=toy.texts)
    own = [number % 120 if number % 5 else -1 for number in range(150)]
    found = rank(toy.queries(own), pool, Matrices(toy.dense, toy.sparse))
    words = lexical_scores(toy.texts, toy.asked)
    for number, vectors in enumerate(toy.vectors):
        sparse = [
            dict(zip(row.ids.tolist(), row.weights.tolist(), strict=True)).get(number % 9, 0.0)
            for row in map(toy.sparse.row, range(len(pool)))
        ]
        dense = toy.dense @ vectors.dense
        assert found.dense[number] == by_hand(dense, pool, own[number], True)
        assert found.lexical[number] == by_hand(words[number], pool, own[number], False)
        assert found.sparse[number] == by_hand(
            np.array(sparse, np.float32), pool, own[number], False
        )
        fused = fused_scores(dense, words[number])
        fused[pool.paper_of == own[number]] = -np.inf
        passages = best(fused, pool.by_id, rankings.FUSED)
        assert found.fused_passages[number].tolist() == passages.tolist()
        assert found.fused[number] == list(dict.fromkeys(pool.paper_of[passages]))[: rankings.DEPTH]


def test_a_query_without_a_known_word_finds_nothing_by_words() -> None:
    toy = Toy(1, 2, 1)
    toy.asked = ["zebra"]
    found = rank(toy.queries([-1]), pool_of(1, 1, texts=toy.texts), Matrices(toy.dense, None))
    assert found.lexical == [[]]
    assert found.sparse == []
    assert len(found.fused[0]) == 2


@pytest.mark.parametrize("depth", [1, 2, 3, 10])
def test_equal_scores_go_by_id_whatever_the_depth(depth: int) -> None:
    scores = np.array([0.5, -math.inf, 0.5, 0.9, 0.5], np.float32)
    order = np.array([3, 0, 2, 4, 1])
    assert best(scores, order, depth).tolist() == [3, 4, 2, 0][:depth]


def test_only_the_best_are_ranked_again_and_the_others_stay_behind() -> None:
    pool = pool_of(*([1] * 80))
    fused = np.arange(60)
    seen: list[int] = []

    def reverse(query: int, places: list[int]) -> Floats:
        seen.extend(places)
        return np.arange(len(places), dtype=np.float32)

    found = Rankings(fused_passages=[fused, np.empty(0, np.int64)])
    assert rank_again(found, pool, reverse) == [list(range(49, -1, -1)), []]  # type: ignore[arg-type]
    assert seen == list(range(rankings.RERANKED))
