"""The same calls give the same answers on Edge, and on a real server over HTTP and over gRPC."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import SecretStr

from pipeline.errors import PermanentFailure
from pipeline.index.edge import EdgeIndex
from pipeline.index.load import audit_month, load_month
from pipeline.index.passage_index import Layout, PassageIndex, Restriction
from pipeline.index.server import ServerIndex
from tests.server.conftest import KEY, Server
from tests.unit.index.building import LAYOUT, MODEL, answers, make_point, three_months


@pytest.fixture
def edge(tmp_path: Path) -> Iterator[EdgeIndex]:
    index = EdgeIndex(tmp_path / "qdrant-edge" / "c")
    yield index
    index.close()


@pytest.fixture(params=["http", "grpc"])
def server(qdrant: Server, request: pytest.FixtureRequest) -> Iterator[ServerIndex]:
    port = qdrant.grpc_port if request.param == "grpc" else None
    index = ServerIndex(qdrant.url, f"{request.node.name}", SecretStr(KEY), grpc_port=port)
    yield index
    index.close()


@pytest.fixture(params=["edge", "http", "grpc"])
def index(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[PassageIndex]:
    if request.param == "edge":
        made: PassageIndex = EdgeIndex(tmp_path / "qdrant-edge" / "c")
    else:
        qdrant: Server = request.getfixturevalue("qdrant")
        port = qdrant.grpc_port if request.param == "grpc" else None
        made = ServerIndex(qdrant.url, request.node.name, SecretStr(KEY), grpc_port=port)
    yield made
    made.close()


@pytest.mark.parametrize("layout", [LAYOUT, replace(LAYOUT, sparse_idf=False)], ids=["idf", "plain"])
def test_every_search_has_the_same_answer(edge: EdgeIndex, server: ServerIndex, layout: Layout) -> None:
    for index in (edge, server):
        index.ensure_collection(layout)
        load_month(index, "2024-03", three_months())
    assert answers(server) == answers(edge)
    assert any(answers(edge))


def test_months_and_models_are_the_same(edge: EdgeIndex, server: ServerIndex) -> None:
    for index in (edge, server):
        index.ensure_collection(LAYOUT)
        index.upsert(three_months())
        index.delete([make_point(4).passage_id, make_point(77).passage_id])
    assert server.layout() == edge.layout() == LAYOUT
    assert server.models() == edge.models() == [MODEL]
    assert server.values("categories") == edge.values("categories") == ["cs.CL", "cs.IR", "stat.ML"]
    for month in ("2024-03", "2024-04", "2024-05", "2024-06"):
        assert server.ids_of_month(month) == edge.ids_of_month(month)
        assert server.count(month) == edge.count(month) == len(edge.ids_of_month(month))


def test_reading_makes_no_collection(index: PassageIndex) -> None:
    assert (index.layout(), index.count("2024-03"), index.models()) == (None, 0, [])
    assert index.layout() is None


def test_a_collection_of_another_layout_is_refused(index: PassageIndex) -> None:
    index.ensure_collection(LAYOUT)
    index.ensure_collection(LAYOUT)
    with pytest.raises(PermanentFailure, match=r"16 dimensions.*CITELOOM_QDRANT_COLLECTION"):
        index.ensure_collection(Layout(16, sparse_idf=True))


def test_a_second_load_sends_nothing_and_a_third_only_changes(index: PassageIndex) -> None:
    index.ensure_collection(LAYOUT)
    points = [make_point(number) for number in range(600)]
    assert load_month(index, "2024-03", points).sent == 600
    assert load_month(index, "2024-03", points).sent == 0
    changed = [make_point(0, content="second"), *points[2:]]
    load = load_month(index, "2024-03", changed)
    assert (load.sent, load.removed) == (1, 1)
    audit = audit_month(index, "2024-03", load.expected)
    assert (audit.present, audit.missing, audit.stale) == (599, (), ())


def test_a_load_leaves_other_months_alone(index: PassageIndex) -> None:
    index.ensure_collection(LAYOUT)
    load_month(index, "2024-03", [make_point(1)])
    load_month(index, "2024-04", [make_point(2, month="2024-04")])
    load_month(index, "2024-03", [])
    assert (index.count("2024-03"), index.count("2024-04")) == (0, 1)


def test_a_point_without_sparse_terms_can_be_found(index: PassageIndex) -> None:
    index.ensure_collection(LAYOUT)
    bare = replace(make_point(3), sparse_ids=[], sparse_weights=[])
    index.upsert([bare])
    hits = index.search(bare.dense, [], [], limit=5, restriction=Restriction())
    assert [hit.passage_id for hit in hits] == [bare.passage_id]


def test_every_id_of_a_large_month_is_listed(index: PassageIndex) -> None:
    index.ensure_collection(LAYOUT)
    points = [make_point(number) for number in range(5_300)]
    index.upsert(points)
    assert len(index.ids_of_month("2024-03")) == 5_300
