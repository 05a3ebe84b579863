"""Fusion of dense and lexical rankings, and whether a hit fits its query."""

from types import SimpleNamespace

import pytest

from pipeline.embedding.minilm import NAME as MINILM
from pipeline.index.fusion import DENSE_WEIGHT, Ranking, fuse_scores, rank
from pipeline.index.passage_index import ScoredPoint
from pipeline.index.search import coverage, fits
from tests.cases import cases_beside
from tests.unit.index.building import make_points, query


def found(**scores):
    """Passages with their scores, best first."""
    ranked = sorted(scores.items(), key=lambda item: -item[1])
    return [ScoredPoint(name, score, {"kind": "paragraph"}) for name, score in ranked]


@cases_beside("dense", "words", "dense_shares", "word_shares")
def test_scores_are_added_after_each_is_divided_by_its_best(
    dense, words, dense_shares, word_shares
):
    fused = fuse_scores(found(**dense), found(**words))
    assert {point.passage_id: point.cosine for point in fused} == dense
    assert [point.score for point in fused] == pytest.approx(
        [
            DENSE_WEIGHT * of_dense + (1 - DENSE_WEIGHT) * of_words
            for of_dense, of_words in zip(dense_shares, word_shares, strict=True)
        ]
    )


@cases_beside("case")
def test_front_matter_and_boilerplate_count_less(case):
    less, other = fuse_scores([ScoredPoint("less", 0.9, case), *found(a=0.8)], [])
    assert less.score < other.score


@cases_beside("query", "is_fit", "cosine")
def test_a_hit_fits_by_its_cosine_and_the_words_that_it_shares(query, is_fit, cosine):
    text = "Beam search keeps partial hypotheses."
    assert fits(MINILM, query, [text], cosine) is is_fit
    assert fits("BAAI/bge-m3", query, [text], cosine)


def test_coverage_counts_stems_once():
    assert coverage("retrieving retrieved beams", ["a beam"]) == 0.5
    assert coverage("the", ["the"]) == 0.0


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


@pytest.mark.parametrize("by", ["dense", "fused"])
def test_compressed_vectors_choose_candidates_and_uncompressed_ones_decide(by):
    points, wanted = make_points(range(400)), query(17)
    cosines = dict(zip(points.ids, (points.dense @ wanted.dense).tolist(), strict=True))
    words = {point: int(point[:2], 16) / 255 for point in cosines}
    compressed = {point: cosine + 0.3 * words[point] for point, cosine in cosines.items()}
    compared = []

    def best(request):
        if request.passages is not None:
            compared.extend(request.passages)
            scores = {point: cosines[point] for point in request.passages}
        else:
            scores = words if request.by == "lexical" else compressed
        ranked = sorted(scores, key=scores.get, reverse=True)[: request.limit]
        return [ScoredPoint(point, scores[point], {}) for point in ranked]

    index = SimpleNamespace(search=lambda asked: [best(request) for _, request in asked])
    (found,) = rank(index, [wanted], Ranking(10, by=by))
    assert len(compared) == Ranking(10).candidates == 100
    assert [point.cosine for point in found] == [cosines[point.passage_id] for point in found]
    if by == "dense":
        nearest = sorted(cosines, key=cosines.get, reverse=True)
        assert [point.passage_id for point in found] == nearest[:10]
