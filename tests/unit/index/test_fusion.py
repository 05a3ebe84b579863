"""Fusion of dense and lexical rankings, and whether a hit fits its query."""

from types import SimpleNamespace

import pytest

from pipeline.embedding.minilm import NAME as MINILM
from pipeline.index.fusion import DENSE_WEIGHT, Ranking, fuse_scores, rank
from pipeline.index.passage_index import ScoredPoint
from pipeline.index.search import coverage, fits
from tests.cases import cases
from tests.unit.index.building import make_points, query


def found(**scores):
    """Passages with their scores, best first."""
    ranked = sorted(scores.items(), key=lambda item: -item[1])
    return [ScoredPoint(name, score, {"kind": "paragraph"}) for name, score in ranked]


def scores_of(points):
    """Passage to score."""
    return {point.passage_id: point.score for point in points}


def test_scores_are_added_after_each_is_divided_by_its_best():
    fused = fuse_scores(found(a=0.8, b=0.4, c=0.2), found(b=12.0, c=6.0))
    weight = DENSE_WEIGHT
    assert scores_of(fused) == pytest.approx(
        {"a": weight, "b": weight / 2 + (1 - weight), "c": weight / 4 + (1 - weight) / 2}
    )
    assert {point.passage_id: point.cosine for point in fused} == {"a": 0.8, "b": 0.4, "c": 0.2}


def test_without_a_shared_word_the_dense_order_stays():
    assert scores_of(fuse_scores(found(a=0.5, b=0.25), [])) == pytest.approx(
        {"a": DENSE_WEIGHT, "b": DENSE_WEIGHT / 2}
    )
    assert fuse_scores([], []) == []


def test_cosines_below_zero_count_nothing():
    fused = fuse_scores(found(a=-0.1, b=-0.2), found(b=3.0))
    assert scores_of(fused) == pytest.approx({"a": 0.0, "b": 1 - DENSE_WEIGHT})


@cases("unit/index/cases.toml", "front_matter_and_boilerplate_count_less")
def test_front_matter_and_boilerplate_count_less(case):
    fused = scores_of(fuse_scores([ScoredPoint("less", 0.9, case), *found(a=0.8)], []))
    assert fused["less"] < fused["a"]


@cases(
    "unit/index/cases.toml",
    "a_hit_fits_by_its_cosine_and_the_words_that_it_shares",
    ("query", "is_fit", "cosine"),
)
def test_a_hit_fits_by_its_cosine_and_the_words_that_it_shares(query, is_fit, cosine):
    text = "Beam search keeps partial hypotheses."
    assert fits(MINILM, query, text, cosine) is is_fit
    assert fits("BAAI/bge-m3", query, text, cosine)


def test_coverage_counts_stems_once():
    assert coverage("retrieving retrieved beams", "a beam") == 0.5
    assert coverage("the", "the") == 0.0


@pytest.mark.parametrize(
    ("best", "last", "with_words"), [(99, 1, range(33)), (1, 99, [0])], ids=["one", "many"]
)
def test_what_ties_with_the_last_of_the_word_list_counts_without_words(best, last, with_words):
    """Which of these the list has is not defined."""
    ids = [f"{number:02}" for number in range(Ranking(33).candidates)]
    of_words = zip(ids, [2.0] * best + [1.0] * last, strict=True)
    lists = {
        "dense": [ScoredPoint(point, 1.0, {}) for point in ids],
        "lexical": [ScoredPoint(*point, {}) for point in of_words],
    }
    index = SimpleNamespace(search=lambda asked: [lists[request.by] for _, request in asked])
    (found,) = rank(index, [query()], Ranking(33))
    assert [point.passage_id for point in found] == ids[:33]
    assert [number for number, point in enumerate(found) if point.score > 0.9] == [*with_words]


class Compressed:
    """Points whose compressed vectors are wrong by up to 0.3; counts the uncompressed ones that it
    reads.
    """

    def __init__(self, points):
        self.dense, self.read = dict(zip(points.ids, points.dense, strict=True)), 0

    def search(self, searches):
        return [self._best(query, request) for query, request in searches]

    def _best(self, query, request):
        noise = {point: int(point[:2], 16) / 255 for point in self.dense}
        cosines = {point: float(vector @ query.dense) for point, vector in self.dense.items()}
        if request.passages is not None:
            self.read += len(request.passages)
            scores = {point: cosines[point] for point in request.passages}
        elif request.by == "lexical":
            scores = noise
        else:
            scores = {point: cosine + 0.3 * noise[point] for point, cosine in cosines.items()}
        best = sorted(scores, key=lambda point: -scores[point])[: request.limit]
        return [ScoredPoint(point, scores[point], {}) for point in best]


@pytest.mark.parametrize("by", ["dense", "fused"])
def test_compressed_vectors_choose_candidates_and_uncompressed_ones_decide(by):
    index = Compressed(make_points(range(400)))
    wanted = query(17)
    (found,) = rank(index, [wanted], Ranking(10, by=by))
    assert index.read == Ranking(10).candidates == 100
    cosines = {point: float(vector @ wanted.dense) for point, vector in index.dense.items()}
    assert all(point.cosine == pytest.approx(cosines[point.passage_id]) for point in found)
    if by == "dense":
        nearest = sorted(cosines, key=lambda point: -cosines[point])
        assert [point.passage_id for point in found] == nearest[:10]
