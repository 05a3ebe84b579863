"""Edge, and a real server over HTTP and over gRPC: the same calls give the same answers."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from pipeline.embedding.embedder import SparseRows
from pipeline.errors import MissingInput, PermanentFailure, SettingError
from pipeline.index.edge import EdgeCollections
from pipeline.index.fusion import Ranking, rank
from pipeline.index.passage_index import Request
from tests.server.conftest import open_collections, sweep
from tests.unit.index.building import (
    LAYOUT,
    answers,
    find,
    make_points,
    nearly,
    passage_id,
    query,
    three_months,
)

pytestmark = pytest.mark.slow

MONTHS = ("2024-03", "2024-04", "2024-05", "2024-06")
OTHER = replace(LAYOUT, form="title")


@pytest.fixture
def edge(tmp_path):
    """The collections of an alias on Edge."""
    made = EdgeCollections(tmp_path / "qdrant-edge" / "one", "one")
    yield made
    made.close()


@pytest.fixture(
    params=["edge", *(pytest.param(over, marks=pytest.mark.server) for over in ("http", "grpc"))]
)
def one(request):
    """The collections of an alias, on each engine by turns."""
    if request.param == "edge":
        yield request.getfixturevalue("edge")
        return
    alias = f"one-{request.getfixturevalue('tmp_path').name}-{request.param}"
    made = open_collections(request.getfixturevalue("qdrant"), alias, request.param)
    yield made
    sweep(made)


def _of(collections, layout=LAYOUT):
    return collections.collection(layout.collection(collections.alias))


def _loaded(collections, layout, batches):
    index = _of(collections, layout)
    index.create(layout)
    for batch in batches:
        index.upsert(batch)
    index.build_graph()
    return index


@pytest.mark.parametrize("quantization", ["none", "int8"])
def test_every_search_has_the_answer_of_edge(edge, collections, quantization):
    layout = replace(LAYOUT, quantization=quantization)
    theirs, ours = (answers(_loaded(each, layout, three_months())) for each in (collections, edge))
    assert all(ours)
    # Both keep 16 bits of a number, and do not round alike.
    assert theirs == [nearly(hits, 5e-4) for hits in ours]


def test_many_queries_are_answered_like_one_after_the_other(one):
    index = _loaded(one, LAYOUT, three_months())
    queries = [query(number, terms=(number % 5, 100 + number)) for number in range(70)]
    together = rank(index, queries, Ranking(5))
    assert together == [nearly(rank(index, [each], Ranking(5))[0]) for each in queries]
    assert index.search([]) == []


def test_what_was_put_in_and_not_taken_out_is_listed(one):
    index = _loaded(one, LAYOUT, three_months())
    index.delete([passage_id(4), passage_id(77)])
    assert index.layout() == LAYOUT
    assert index.values("category_keys") == ["cs", "cs.CL", "cs.IR", "stat", "stat.ML"]
    assert [index.count(month) for month in (None, *MONTHS)] == [39, 14, 12, 13, 0]
    points = three_months()[1]
    digests = {
        identifier: payload["digest"]
        for identifier, payload in zip(points.ids, points.payloads, strict=True)
    }
    del digests[passage_id(4)]
    assert dict(index.contents("2024-04")) == digests
    assert [len(list(index.outside(months))) for months in ((), MONTHS[:1], MONTHS)] == [39, 25, 0]


def test_reading_makes_no_collection(one):
    index = _of(one)
    assert (index.layout(), index.count(), index.values("kind")) == (None, 0, [])
    assert (list(index.contents("2024-03")), list(index.outside([]))) == ([], [])
    index.build_graph(wait=True)
    assert (one.live(), one.names()) == (None, [])


def test_a_collection_is_made_once_and_with_one_layout(one):
    index = _of(one)
    index.create(LAYOUT)
    index.create(LAYOUT)
    with pytest.raises(PermanentFailure, match=r"16 dimensions"):
        index.create(replace(LAYOUT, dimensions=16))
    assert index.layout() == LAYOUT


def test_one_of_two_collections_is_live_while_the_alias_changes_and_nothing_is_mixed(one):
    first = _loaded(one, LAYOUT, [make_points([1])])
    second = _loaded(one, OTHER, [make_points([2])])
    assert one.live() is None
    one.make_live(first.name)
    names = {first.name, second.name}
    with ThreadPoolExecutor(2) as pool:
        for index in (second, first, first):
            seen = [pool.submit(one.live) for _ in range(20)]
            one.make_live(index.name)
            assert {each.result() for each in seen} <= names
            assert one.live() == index.name
    assert one.names() == sorted(names)
    assert (first.count(), second.count()) == (1, 1)


def test_the_live_collection_is_not_dropped_and_another_is_gone_and_can_be_made_again(one):
    first, second = _loaded(one, LAYOUT, []), _loaded(one, OTHER, [make_points([1])])
    one.make_live(first.name)
    with pytest.raises(SettingError, match=first.name):
        one.drop(first.name)
    one.drop(second.name)
    one.drop(second.name)
    assert (one.names(), second.layout(), second.count()) == ([first.name], None, 0)
    second.create(OTHER)
    assert (one.names(), second.count()) == (sorted([first.name, second.name]), 0)


def test_what_is_not_there_cannot_be_made_live(one):
    with pytest.raises((PermanentFailure, SettingError)):
        one.make_live(LAYOUT.collection(one.alias))
    assert one.live() is None


def test_a_point_that_is_sent_again_replaces_the_one_before(one):
    index = _loaded(
        one, LAYOUT, [make_points([1, 2]), make_points([1], content="second", month="2024-04")]
    )
    assert (index.count(), index.count("2024-03"), index.count("2024-04")) == (2, 1, 1)


def test_a_point_without_sparse_terms_can_be_found(one):
    bare = replace(make_points([3]), lexical=SparseRows.nothing(1), sparse=SparseRows.nothing(1))
    index = _loaded(one, LAYOUT, [bare])
    asked = query(3, terms=())
    assert [hit.passage_id for hit in rank(index, [asked], Ranking(5))[0]] == list(bare.ids)
    assert [find(index, asked, Request(5, by)) for by in ("lexical", "sparse")] == [[], []]


def test_a_point_that_cannot_be_is_named_and_none_is_sent(one):
    index = _loaded(one, LAYOUT, [])
    points = make_points([5, 6], month="2024-04")
    points.dense[1, 3] = np.nan
    with pytest.raises(
        PermanentFailure, match=rf"{passage_id(6)} .*--months 2024-04 --select embeddings --force"
    ):
        index.upsert(points)
    assert index.count() == 0


def test_every_id_of_a_large_month_is_listed(one):
    index = _loaded(one, LAYOUT, [])
    points = make_points(range(index.page + 300))
    index.upsert(replace(points, payloads=[{"month": MONTHS[0]}] * len(points)))
    assert {identifier for identifier, _ in index.contents(MONTHS[0])} == set(points.ids)


def test_a_point_without_month_or_digest_is_outside_and_foreign(one):
    index = _loaded(one, LAYOUT, [make_points([1])])
    for number, payload in ((2, {}), (3, {"month": None}), (4, {"month": "2024-03"})):
        index.upsert(replace(make_points([number]), payloads=[payload]))
    assert set(index.outside(MONTHS)) == {passage_id(2), passage_id(3)}
    assert dict(index.contents("2024-03"))[passage_id(4)] is None


def test_searching_a_collection_that_is_not_there_says_what_to_run(one):
    with pytest.raises(MissingInput, match="citeloom run --months all"):
        find(_of(one), query(), Request(5))
