"""Exact rankings against what a test computes by hand."""

from __future__ import annotations

import logging
import math
from collections import Counter

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from pipeline.evaluation.retrieval import rankings
from pipeline.evaluation.retrieval.pool import Pool
from pipeline.evaluation.retrieval.rankings import (
    Asked,
    Hybrid,
    best,
    bm25_index,
    fuse,
    idf,
    rank_again,
    rank_by_vectors,
    terms,
)
from pipeline.evaluation.retrieval.vectors import Matrices

Floats = NDArray[np.float32]


def pool_of(*passages_of_each: int) -> Pool:
    """Papers with so many passages each; ids run against the order of the passages."""
    paper_of = np.repeat(np.arange(len(passages_of_each), dtype=np.int32), passages_of_each)
    rows = [{"passage_id": f"{999 - place}", "arxiv_id": f"p{paper}"} for place, paper in enumerate(paper_of)]
    starts = np.searchsorted(paper_of, np.arange(len(passages_of_each)))
    number_of = {f"p{number}": number for number in range(len(passages_of_each))}
    return Pool(number_of, rows, starts, paper_of, np.arange(len(rows))[::-1].copy())


def toy(seed: int, passages: int, queries: int) -> tuple[Matrices, Matrices]:
    """Random vectors of passages and queries; a tenth of the sparse places are filled."""
    random = np.random.default_rng(seed)

    def some(count: int) -> Matrices:
        filled = random.random((count, 40)) * (random.random((count, 40)) < 0.1)
        dense = random.standard_normal((count, 6)).astype(np.float32)
        return Matrices(dense / np.linalg.norm(dense, axis=1, keepdims=True), csr_matrix(filled.astype(np.float32)))

    return some(passages), some(queries)


def by_hand(scores: Floats, pool: Pool, own: int, found: bool) -> list[int]:
    """Papers by their best passage, one loop over all of them. found: whether a score of 0 is one."""
    top: dict[int, float] = {}
    for place, score in enumerate(scores):
        paper = int(pool.paper_of[place])
        if paper != own and (found or score > 0):
            top[paper] = max(top.get(paper, -math.inf), float(score))
    return sorted(top, key=lambda paper: (-top[paper], paper))[: rankings.DEPTH]


def test_dense_and_sparse_rankings_are_those_of_a_loop_over_all_passages() -> None:
    pool = pool_of(*([3, 1, 2, 5] * 30))
    passages, queries = toy(7, len(pool), 150)
    own = [number % 120 - (number % 5 == 0) * 1000 for number in range(150)]
    asked = Asked(["?"] * 150, [max(each, -1) for each in own], queries)
    found = rank_by_vectors(asked, pool, passages, sparse_idf=True)
    whole, weights = passages.sparse.toarray(), queries.sparse.toarray()
    having = (whole > 0).sum(axis=0)
    inverse = [math.log((len(pool) - n + 0.5) / (n + 0.5) + 1) for n in having]
    for number in range(150):
        dense = np.array([float(queries.dense[number] @ row) for row in passages.dense], np.float32)
        sparse = np.array([sum(weights[number] * inverse * row) for row in whole], np.float32)
        assert found.dense[number] == by_hand(dense, pool, asked.own[number], True)
        assert found.sparse[number] == by_hand(sparse, pool, asked.own[number], False)


def test_the_asking_paper_is_never_found() -> None:
    pool = pool_of(2, 2, 2)
    passages, _ = toy(3, len(pool), 1)
    own_words = Matrices(passages.dense[:1], passages.sparse[:1])
    for own, others in ((0, {1, 2}), (-1, {0, 1, 2})):
        found = rank_by_vectors(Asked(["?"], [own], own_words), pool, passages, sparse_idf=False)
        assert set(found.dense[0]) == others
        assert set(found.fused[0]) == others
        assert set(found.sparse[0]) <= others
        assert set(pool.paper_of[found.fused_passages[0]].tolist()) == others
        bm25 = rankings.rank_by_bm25(Asked(["copper"], [own], own_words), pool, ["copper"] * 6)
        assert set(bm25[0]) == others


@pytest.mark.parametrize(("having", "expected"), [(1, math.log(3.5 / 1.5 + 1)), (4, math.log(0.5 / 4.5 + 1))])
def test_the_weight_of_a_token_is_qdrants(having: int, expected: float) -> None:
    column = [[1.0]] * having + [[0.0]] * (4 - having)
    assert idf(csr_matrix(np.array(column, np.float32)))[0] == pytest.approx(expected)


@pytest.mark.parametrize(("sparse_idf", "expected"), [(False, [0, 1]), (True, [1, 0])])
def test_weights_that_are_learned_are_left_as_they_are(sparse_idf: bool, expected: list[int]) -> None:
    """Token 0 is in both passages: a product of 1.3 against 1.28, unless what is rare weighs more."""
    dense = np.ones((2, 1), np.float32)
    passages = Matrices(dense, csr_matrix(np.array([[1.3, 0.0], [1.1, 0.9]], np.float32)))
    asking = Matrices(dense[:1], csr_matrix(np.array([[1.0, 0.2]], np.float32)))
    found = rank_by_vectors(Asked(["?"], [-1], asking), pool_of(1, 1), passages, sparse_idf=sparse_idf)
    assert found.sparse[0] == expected


def test_a_query_without_a_known_token_finds_nothing_by_words() -> None:
    pool = pool_of(1, 1)
    passages, _ = toy(1, 2, 1)
    unknown = csr_matrix((np.ones(1, np.float32), np.array([70]), np.array([0, 1])), shape=(1, 71))
    found = rank_by_vectors(Asked(["?"], [-1], Matrices(passages.dense[:1], unknown)), pool, passages, sparse_idf=True)
    assert found.sparse == [[]]
    assert len(found.fused[0]) == 2
    assert rankings.rank_by_bm25(Asked(["zebra", ""], [-1, -1], passages), pool, ["one", "two"]) == [[], []]


def test_ranks_are_fused_as_qdrant_does() -> None:
    order = np.arange(9)
    fused = fuse([np.array([4, 2, 7]), np.array([7, 8, 5, 6, 4])], order)
    scores = {4: 1 / 60 + 1 / 64, 2: 1 / 61, 7: 1 / 62 + 1 / 60, 8: 1 / 61, 5: 1 / 62, 6: 1 / 63}
    assert fused.tolist() == sorted(scores, key=lambda place: (-scores[place], place))


@pytest.mark.parametrize("depth", [1, 2, 3, 10])
def test_equal_scores_go_by_id_whatever_the_depth(depth: int) -> None:
    scores = np.array([0.5, -math.inf, 0.5, 0.9, 0.5], np.float32)
    order = np.array([3, 0, 2, 4, 1])
    assert best(scores, order, depth).tolist() == [3, 4, 2, 0][:depth]


def test_bm25_is_lucenes() -> None:
    texts = ["quartz quartz lantern", "lantern harbor", "meadow violin copper lantern", "quartz harbor"]
    pool = pool_of(1, 1, 1, 1)
    words = [text.split() for text in texts]
    mean = sum(map(len, words)) / 4

    def score(query: str, document: list[str]) -> float:
        counts, total = Counter(document), 0.0
        for word in query.split():
            having = sum(word in other for other in words)
            inverse = math.log(1 + (4 - having + 0.5) / (having + 0.5))
            length = rankings.BM25_K1 * (1 - rankings.BM25_B + rankings.BM25_B * len(document) / mean)
            total += inverse * counts[word] / (counts[word] + length)
        return total

    queries = ["quartz", "lantern harbor", "copper quartz lantern"]
    _, vectors = toy(1, 1, 3)
    found = rankings.rank_by_bm25(Asked(queries, [-1] * 3, vectors), pool, texts)
    for query, ranking in zip(queries, found, strict=True):
        scores = {paper: score(query, document) for paper, document in enumerate(words)}
        assert ranking == sorted((p for p in scores if scores[p] > 0), key=lambda paper: (-scores[paper], paper))


def test_only_the_best_are_ranked_again_and_the_others_stay_behind() -> None:
    pool = pool_of(*([1] * 80))
    fused = np.arange(60)
    seen: list[int] = []

    def reverse(query: int, places: list[int]) -> Floats:
        seen.extend(places)
        return np.arange(len(places), dtype=np.float32)

    ranked = rank_again(Hybrid([], [], [], [fused, np.empty(0, np.int64)]), pool, reverse)  # type: ignore[arg-type]
    assert seen == list(range(rankings.RERANKED))
    assert ranked == [list(range(49, -1, -1)), []]


def test_an_index_of_words_is_built_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        index = bm25_index(terms(["Stones are old.", "Ferns grow."]))
    assert index.get_scores_from_ids(index.get_tokens_ids(["stone"])).argmax() == 0
    assert caplog.records == []
