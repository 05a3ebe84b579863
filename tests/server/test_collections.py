"""Collections on a real server: whose they are, which one searches ask, and how they are built."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from pipeline.errors import PermanentFailure, SettingError
from pipeline.index.fusion import Ranking, rank
from pipeline.index.passage_index import INTEGERS, KEYWORDS, Layout, Request
from tests.processes import wait_until
from tests.server.conftest import open_collections, sweep
from tests.unit.index.building import LAYOUT, find, make_points, query

OTHER = replace(LAYOUT, form="title")


def _made(collections, layout=LAYOUT):
    index = collections.collection(layout.collection(collections.alias))
    index.create(layout)
    return index


def _info(collections, name):
    return collections.connection.read(lambda client: client.get_collection(name))


def _make_strange(collections, name):
    """A collection that somebody else might have."""
    from qdrant_client import models

    vectors = models.VectorParams(size=4, distance=models.Distance.DOT)
    collections.connection.write(lambda client: client.create_collection(name, vectors))


@pytest.fixture
def grpc(qdrant, request):
    """Collections of an alias of the test's own, over gRPC."""
    made = open_collections(
        qdrant, request.node.name.replace("_", "-"), "grpc", shards=2, on_disk=True
    )
    yield made
    sweep(made)


def test_a_new_collection_is_made_as_the_layout_and_the_settings_say(grpc):
    index = _made(grpc, replace(LAYOUT, quantization="int8"))
    info = _info(grpc, index.name)
    params = info.config.params
    dense = params.vectors["dense"]
    assert (dense.distance, dense.datatype, dense.on_disk) == ("Cosine", "float16", True)
    assert dense.quantization_config.scalar.type == "int8"
    vectors = {
        name: (each.modifier, each.index.on_disk) for name, each in params.sparse_vectors.items()
    }
    assert vectors == {"lexical": ("idf", True), "sparse": (None, True)}
    assert params.shard_number == 2
    assert set(info.payload_schema) == {*KEYWORDS, *INTEGERS}
    assert info.config.hnsw_config.on_disk
    assert all(index.params.on_disk for index in info.payload_schema.values())


def test_a_compression_that_the_server_lacks_is_refused(grpc):
    with pytest.raises(SettingError, match=r"turbo4 needs Qdrant 1\.18"):
        _made(grpc, replace(LAYOUT, quantization="turbo4"))
    assert grpc.names() == []


def test_payload_indexes_that_a_killed_run_did_not_come_to_are_made_up_for(grpc):
    index = _made(grpc)
    grpc.connection.write(lambda client: client.delete_payload_index(index.name, "kind"))
    assert "kind" not in _info(grpc, index.name).payload_schema
    index.create(LAYOUT)
    assert "kind" in _info(grpc, index.name).payload_schema


def test_runs_that_make_a_collection_at_once_do_not_hinder_each_other(grpc):
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: _made(grpc).layout(), range(4)))
    assert made == [LAYOUT] * 4
    assert set(_info(grpc, grpc.names()[0]).payload_schema) == {*KEYWORDS, *INTEGERS}


def test_collections_of_another_alias_are_not_ours(collections, qdrant):
    longer = open_collections(qdrant, f"{collections.alias}-longer", "grpc")
    _made(longer)
    first = _made(collections)
    assert collections.names() == [first.name]
    assert longer.names() != [first.name]
    theirs = collections.collection(longer.names()[0])
    with pytest.raises(PermanentFailure, match="citeloom did not make"):
        theirs.layout()
    sweep(longer)


def test_a_collection_of_somebody_else_is_refused_and_left(collections):
    name = LAYOUT.collection(collections.alias)
    _make_strange(collections, name)
    index = collections.collection(name)
    for call in (index.layout, lambda: index.create(LAYOUT), lambda: collections.make_live(name)):
        with pytest.raises(
            PermanentFailure, match=f"{name} that citeloom did not make: set CITELOOM_QDRANT_COLL"
        ):
            call()
    with pytest.raises(PermanentFailure, match="did not make"):
        collections.drop(name)
    assert collections.connection.read(lambda client: client.collection_exists(name))


def test_a_collection_with_the_name_of_the_alias_is_refused(collections):
    _make_strange(collections, collections.alias)
    for call in (collections.live, lambda: collections.make_live(_made(collections).name)):
        with pytest.raises(
            PermanentFailure, match=f"{collections.alias} that citeloom did not make"
        ):
            call()


def test_an_alias_that_leads_to_somebody_elses_is_not_taken(collections):
    from qdrant_client import models

    theirs = f"{collections.alias}-theirs"
    _make_strange(collections, theirs)
    lead = models.CreateAlias(collection_name=theirs, alias_name=collections.alias)
    collections.connection.write(
        lambda client: client.update_collection_aliases(
            [models.CreateAliasOperation(create_alias=lead)]
        )
    )
    with pytest.raises(PermanentFailure, match="did not make"):
        collections.make_live(_made(collections).name)
    assert collections.live() == theirs


def test_searches_during_a_swap_never_fail_and_never_mix(collections):
    old, new = _made(collections), _made(collections, OTHER)
    old.upsert(make_points(range(0, 20), grade="A"))
    new.upsert(make_points(range(20, 40), grade="B"))
    collections.make_live(old.name)
    seen = []
    failures = []
    enough = threading.Event()

    def search():
        while not enough.is_set():
            try:
                found = find(
                    collections.collection(collections.live()),
                    query(),
                    Request(20, fields=("grade",)),
                )
                seen.append({hit.payload["grade"] for hit in found})
            except BaseException as error:
                failures.append(error)

    def wait_for_hits(grade):
        before = len(seen)
        wait_until(lambda: failures or {grade} in seen[before:], f"hits of {grade}")

    searching = threading.Thread(target=search)
    searching.start()
    try:
        for name, grade in ((old.name, "A"), (new.name, "B"), (old.name, "A"), (new.name, "B")):
            collections.make_live(name)
            wait_for_hits(grade)
    finally:
        enough.set()
        searching.join()
    assert failures == []
    assert {frozenset(grades) for grades in seen} == {frozenset("A"), frozenset("B")}


def _many(count, dimensions):
    """Points with structure: a few directions, and a little of its own in each."""
    random = np.random.default_rng(7)
    centres = random.standard_normal((32, dimensions))
    dense = (
        centres[random.integers(0, 32, count)] + 0.7 * random.standard_normal((count, dimensions))
    ).astype("f4")
    return replace(
        make_points(range(count)), dense=dense / np.linalg.norm(dense, axis=1, keepdims=True)
    )


@pytest.mark.parametrize(("quantization", "least"), [("none", 0.98), ("int8", 0.98)])
def test_a_built_collection_finds_what_comparing_with_every_point_finds(grpc, quantization, least):
    layout = Layout("a model", 128, sparse=True, quantization=quantization)
    index, points = _made(grpc, layout), _many(4_000, 128)
    index.defer_indexing(4_000)
    index.upsert(points)
    assert _info(grpc, index.name).config.optimizer_config.indexing_threshold == 0
    index.build_graph()
    index.defer_indexing(100)  # a small part of the collection
    optimizer = _info(grpc, index.name).config.optimizer_config
    assert optimizer.indexing_threshold > 0
    assert (
        optimizer.default_segment_number == 0
    )  # filled in many, searched in as few as the server likes
    _build_small_ones_too(grpc, index.name)
    index.build_graph(wait=True)
    info = _info(grpc, index.name)
    assert info.status == "green"
    assert info.indexed_vectors_count >= 4_000
    asked = [replace(query(), dense=points.dense[number]) for number in range(0, 4_000, 200)]
    found, exact = (
        rank(index, asked, Ranking(10, by="dense", exact=exact)) for exact in (False, True)
    )
    pairs = [
        ({a.passage_id for a in one}, {b.passage_id for b in two})
        for one, two in zip(found, exact, strict=True)
    ]
    assert sum(len(one & two) for one, two in pairs) / sum(len(two) for _, two in pairs) >= least


def _build_small_ones_too(collections, name):
    """Let the server build graphs for collections that it would search without one."""
    from qdrant_client import models

    config = models.OptimizersConfigDiff(indexing_threshold=50)
    graph = models.HnswConfigDiff(full_scan_threshold=50)
    collections.connection.write(
        lambda client: client.update_collection(name, optimizers_config=config, hnsw_config=graph)
    )


def test_settling_what_is_not_there_is_nothing(grpc):
    grpc.collection(LAYOUT.collection(grpc.alias)).build_graph(wait=True)
    assert grpc.names() == []
