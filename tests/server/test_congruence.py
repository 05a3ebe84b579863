"""The same calls give the same answers on Edge, and on a real server over HTTP and over gRPC."""

from dataclasses import replace

import numpy as np
import pytest

from pipeline.embedding.embedder import SparseRows
from pipeline.errors import MissingInput, PermanentFailure, SettingError
from pipeline.index.edge import EdgeCollections
from pipeline.index.fusion import Ranking, rank
from pipeline.index.passage_index import Request
from pipeline.index.server import ServerCollections
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

ENGINES = ("edge", "http", "grpc")
MONTHS = ("2024-03", "2024-04", "2024-05", "2024-06")
OTHER = replace(LAYOUT, form="title")


def _open(engine, alias, folder, qdrant, **storage):
    if engine == "edge":
        return EdgeCollections(folder / "qdrant-edge" / alias, alias)
    return open_collections(qdrant, f"{alias}-{folder.name}-{engine}", engine, **storage)


@pytest.fixture
def every(qdrant, tmp_path):
    """The collections of one alias on every engine."""
    made = [_open(engine, "congruent", tmp_path, qdrant) for engine in ENGINES]
    yield made
    for each in made:
        _let_go(each)


@pytest.fixture(params=ENGINES)
def one(request, qdrant, tmp_path):
    """The collections of one alias, on each engine by turns."""
    made = _open(request.param, "one", tmp_path, qdrant)
    yield made
    _let_go(made)


def _let_go(collections):
    if isinstance(collections, ServerCollections):
        sweep(collections)
    collections.close()


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
def test_every_search_has_the_same_answer(every, quantization):
    layout = replace(LAYOUT, quantization=quantization)
    edge, *servers = [answers(_loaded(each, layout, three_months())) for each in every]
    assert all(edge)
    for server in servers:
        # Both keep 16 bits of a number, and do not round alike.
        assert server == [nearly(hits, 5e-4) for hits in edge]


def test_many_queries_are_answered_like_one_after_the_other(one):
    index = _loaded(one, LAYOUT, three_months())
    queries = [query(number, terms=(number % 5, 100 + number)) for number in range(70)]
    together = rank(index, queries, Ranking(5))
    assert together == [nearly(rank(index, [each], Ranking(5))[0]) for each in queries]
    assert index.search([]) == []


def test_what_is_in_a_collection_is_the_same(every):
    indexes = [_loaded(each, LAYOUT, three_months()) for each in every]
    for index in indexes:
        index.delete([passage_id(4), passage_id(77)])
    told = [
        (
            index.layout(),
            [index.values(field) for field in ("category_keys", "kind", "subset")],
            [dict(index.contents(month)) for month in MONTHS],
            [sorted(index.outside(months)) for months in ((), ("2024-03",), MONTHS)],
            [index.count(month) for month in (None, *MONTHS)],
        )
        for index in indexes
    ]
    assert told == [told[0]] * len(ENGINES)
    assert told[0][-1] == [39, 14, 12, 13, 0]


def test_reading_makes_no_collection(one):
    index = _of(one)
    assert (index.layout(), index.count(), index.values("kind")) == (None, 0, [])
    assert (list(index.contents("2024-03")), list(index.outside([]))) == ([], [])
    assert (one.live(), one.names()) == (None, [])


def test_a_collection_is_made_once_and_with_one_layout(one):
    index = _of(one)
    index.create(LAYOUT)
    index.create(LAYOUT)
    with pytest.raises(PermanentFailure, match=r"16 dimensions"):
        index.create(replace(LAYOUT, dimensions=16))
    assert index.layout() == LAYOUT


def test_searches_follow_the_alias_and_nothing_is_mixed(one):
    first, second = (
        _loaded(one, LAYOUT, [make_points([1])]),
        _loaded(one, OTHER, [make_points([2])]),
    )
    assert one.live() is None
    for index in (first, second, first, first):
        one.make_live(index.name)
        assert one.live() == index.name
    assert one.names() == sorted([first.name, second.name])
    assert (first.count(), second.count()) == (1, 1)


def test_the_live_collection_is_not_dropped_and_another_is(one):
    first, second = _loaded(one, LAYOUT, []), _loaded(one, OTHER, [])
    one.make_live(first.name)
    with pytest.raises(SettingError, match=first.name):
        one.drop(first.name)
    one.drop(second.name)
    one.drop(second.name)
    assert one.names() == [first.name]
    assert second.layout() is None


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


def _broken(what):
    points = make_points([5, 6], month="2024-04")
    dense, weights = points.dense.copy(), points.lexical.weights.copy()
    dense[1, 3] = np.nan if what == "dense" else dense[1, 3]
    weights[4] = np.inf if what == "sparse" else weights[4]
    return replace(points, dense=dense, lexical=replace(points.lexical, weights=weights))


@pytest.mark.parametrize("what", ["dense", "sparse"])
def test_a_point_that_cannot_be_is_named_and_none_is_sent(one, what):
    index = _loaded(one, LAYOUT, [])
    with pytest.raises(
        PermanentFailure, match=rf"{passage_id(6)} .*--months 2024-04 --select embeddings --force"
    ):
        index.upsert(_broken(what))
    assert index.count() == 0


def test_every_id_of_a_large_month_is_listed(one):
    index = _loaded(one, LAYOUT, [make_points(range(10_300))])
    assert {identifier for identifier, _ in index.contents("2024-03")} == {
        passage_id(n) for n in range(10_300)
    }


def test_a_point_without_month_or_digest_is_outside_and_foreign(collections):
    index = _loaded(collections, LAYOUT, [make_points([1])])
    bare, half = make_points([2]), make_points([3])
    half = replace(half, payloads=[{"month": "2024-03"}])
    index.upsert(replace(bare, payloads=[{}]))
    index.upsert(half)
    assert list(index.outside(MONTHS)) == [passage_id(2)]
    assert dict(index.contents("2024-03"))[passage_id(3)] is None


def test_searching_a_collection_that_is_not_there_says_what_to_run(collections):
    with pytest.raises(MissingInput, match="citeloom run --months all"):
        find(_of(collections), query(), Request(5))
