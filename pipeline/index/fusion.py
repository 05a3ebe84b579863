"""Fusion: rank passages by dense vectors and by words together, from the scores of an index for
each.

It adds scores, each divided by the best of its kind for the query: a convex combination (Bruch, Gai
and Ingber 2023, "An Analysis of Fusion Functions for Hybrid Retrieval"). Every candidate is
compared by its uncompressed dense vector, also one that only its words brought in; one that is not
among the lexical candidates has the lexical score 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pipeline.corpus.passages.boilerplate import is_boilerplate
from pipeline.index.passage_index import (
    Condition,
    PassageIndex,
    QueryVectors,
    Request,
    ScoredPoint,
    VectorName,
)

By = Literal["fused", "dense", "lexical", "sparse"]

# Chosen on SciFact's training claims and DeepScholar-Bench's sentences: from 0.5 to 0.6 neither
# differs by 0.003. On 36 sentences over full texts 0.4 is better:
# docs/experiments/retrieval-on-real-papers.md.
DENSE_WEIGHT = 0.55
# Factor of a passage's score by its kind. Author lines are near to many queries on a topic; a query
# that names an author still finds them.
KIND_WEIGHTS: Mapping[str, float] = {"front_matter": 0.8}
# Factor of a passage's score in acknowledgements and the like, which names of many things fill.
BOILERPLATE_WEIGHT = 0.7
_LEAST_CANDIDATES = 100
# Fields of the payload that a ranking needs: kind and sections for the weight, the paper where only
# its best passage counts. Fetching whole payloads of both lists took ten times as long as the
# search itself.
_FIELDS = ("kind", "section_path", "arxiv_id")
# Scores tie where passages share their words, or are alike. A ranking by one kind of vector asks
# for more than are wanted, so that who just makes the limit is not left to the order in which the
# index found them.
TIES = 50


@dataclass(frozen=True, slots=True)
class Ranking:
    """A ranking to request: the `limit` best passages by one kind of vector, or by dense and
    lexical ones fused.

    where: conditions that must all hold. exact: compare with every passage, uncompressed.
    """

    limit: int
    by: By = "fused"
    where: tuple[Condition, ...] = ()
    exact: bool = False

    @property
    def candidates(self) -> int:
        """Length of the lists of candidates, and how many of them are compared by uncompressed
        vectors: three times the limit, at least 100.
        """
        return max(3 * self.limit, _LEAST_CANDIDATES)

    def request(self, by: VectorName, limit: int) -> Request:
        """The request for one list."""
        return Request(limit, by, self.where, exact=self.exact)


def rank(
    index: PassageIndex, queries: Sequence[QueryVectors], ranking: Ranking
) -> list[list[ScoredPoint]]:
    """Each query's passages, best first, ties by id; of their payloads, only _FIELDS.

    Dense candidates are chosen by their compressed vectors, in every shard. Only the best of all,
    `Ranking.candidates` of them, are compared by their uncompressed ones, in one request. Raises as
    `PassageIndex.search` does.
    """
    if ranking.by == "fused":
        return _fused(index, queries, ranking)
    if ranking.by == "dense":
        request = ranking.request("dense", ranking.candidates)
        lists = index.search([(query, request) for query in queries])
        return [
            best_first([point._replace(cosine=point.score) for point in points], ranking.limit)
            for points in _compare_by_dense(index, queries, lists)
        ]
    request = replace(ranking.request(ranking.by, ranking.limit + TIES), fields=_FIELDS)
    return [
        best_first(points, ranking.limit)
        for points in index.search([(query, request) for query in queries])
    ]


def best_first(passages: Sequence[ScoredPoint], limit: int) -> list[ScoredPoint]:
    """The best passages, ties by id."""
    return sorted(passages, key=lambda passage: (-passage.score, passage.passage_id))[:limit]


def _fused(
    index: PassageIndex, queries: Sequence[QueryVectors], ranking: Ranking
) -> list[list[ScoredPoint]]:
    depth = ranking.candidates
    requests = [ranking.request("dense", depth), ranking.request("lexical", depth)]
    lists = index.search([(query, request) for query in queries for request in requests])
    word_lists = [_without_cut_tie(points, depth) for points in lists[1::2]]
    candidates = [
        _candidates(dense, words, depth)
        for dense, words in zip(lists[::2], word_lists, strict=True)
    ]
    compared = _compare_by_dense(index, queries, candidates)
    return [
        best_first(fuse_scores(*pair), ranking.limit)
        for pair in zip(compared, word_lists, strict=True)
    ]


def _candidates(
    dense: Sequence[ScoredPoint], words: Sequence[ScoredPoint], count: int
) -> list[ScoredPoint]:
    """The best passages of both lists, if those of the lexical list alone are as near as the last
    of the dense list. They are at most that near, so none is lost for want of a dense score.
    """
    known = {point.passage_id for point in dense}
    least = min((point.score for point in dense), default=0.0)
    others = [point._replace(score=least) for point in words if point.passage_id not in known]
    return best_first(fuse_scores([*dense, *others], words), count)


def _compare_by_dense(
    index: PassageIndex,
    queries: Sequence[QueryVectors],
    candidates: Sequence[Sequence[ScoredPoint]],
) -> list[list[ScoredPoint]]:
    """Each query's candidates with the scores of their uncompressed dense vectors, best first."""
    searches = [
        (query, Request(len(points), passages=_ids(points), fields=_FIELDS))
        for query, points in zip(queries, candidates, strict=True)
        if points
    ]
    answers = iter(index.search(searches) if searches else [])
    return [next(answers) if points else [] for points in candidates]


def with_payloads(
    index: PassageIndex, rankings: Sequence[Sequence[ScoredPoint]]
) -> list[Sequence[ScoredPoint]]:
    """The rankings with whole payloads, without points that were deleted meanwhile."""
    ids = list(dict.fromkeys(passage_id for points in rankings for passage_id in _ids(points)))
    payloads = index.payloads(ids) if ids else {}
    return [
        [
            point._replace(payload=payloads[point.passage_id])
            for point in points
            if point.passage_id in payloads
        ]
        for points in rankings
    ]


def _ids(points: Sequence[ScoredPoint]) -> tuple[str, ...]:
    return tuple(point.passage_id for point in points)


def fuse_scores(dense: Sequence[ScoredPoint], words: Sequence[ScoredPoint]) -> list[ScoredPoint]:
    """Passages by DENSE_WEIGHT · dense / best dense + (1 − DENSE_WEIGHT) · lexical / best lexical;
    in no order.

    dense: the scores of all passages. Each passage keeps its cosine.
    """
    lexical = {point.passage_id: point.score for point in words}
    best_dense = max((point.score for point in dense), default=0.0)
    best_lexical = max(lexical.values(), default=0.0)
    fused = []
    for point in dense:
        score = DENSE_WEIGHT * point.score / best_dense if best_dense > 0 else 0.0
        if best_lexical > 0:
            score += (1 - DENSE_WEIGHT) * lexical.get(point.passage_id, 0.0) / best_lexical
        weight = KIND_WEIGHTS.get(point.payload.get("kind", ""), 1.0)
        if is_boilerplate(point.payload.get("section_path", ())):
            weight *= BOILERPLATE_WEIGHT
        fused.append(
            ScoredPoint(point.passage_id, weight * score, point.payload, cosine=point.score)
        )
    return fused


def _without_cut_tie(ranking: list[ScoredPoint], depth: int) -> list[ScoredPoint]:
    """The list without the passages that tie with its last: which of these it has is not
    defined.
    """
    if len(ranking) < depth:
        return ranking
    return [point for point in ranking if point.score != ranking[-1].score]
