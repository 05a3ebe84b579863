"""Collections on a real server: whose they are, which one searches ask, and how they are built."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import pytest

from pipeline.errors import PermanentFailure, SettingError
from pipeline.index.passage_index import INTEGERS, KEYWORDS
from tests.server.conftest import open_collections, sweep
from tests.unit.index.building import LAYOUT, make_points

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
    alias = request.node.name.replace("_", "-")
    made = open_collections(qdrant, alias, shards=2, on_disk=True)
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


def test_runs_that_make_a_collection_at_once_do_not_hinder_each_other(grpc):
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: _made(grpc).layout(), range(4)))
    assert made == [LAYOUT] * 4
    assert set(_info(grpc, grpc.names()[0]).payload_schema) == {*KEYWORDS, *INTEGERS}


def test_collections_of_another_alias_are_not_ours(collections, qdrant):
    longer = open_collections(qdrant, f"{collections.alias}-longer")
    theirs = _made(longer).name
    first = _made(collections)
    assert (collections.names(), longer.names()) == ([first.name], [theirs])
    with pytest.raises(PermanentFailure, match="citeloom did not make"):
        collections.collection(theirs).layout()
    sweep(longer)


def test_a_collection_of_somebody_else_is_refused_and_left(collections):
    name = LAYOUT.collection(collections.alias)
    _make_strange(collections, name)
    index = collections.collection(name)
    refused = (index.layout, partial(index.create, LAYOUT), partial(collections.make_live, name))
    for call in (*refused, partial(collections.drop, name)):
        with pytest.raises(
            PermanentFailure, match=f"{name} that citeloom did not make: set CITELOOM_QDRANT_COLL"
        ):
            call()
    assert collections.connection.read(lambda client: client.collection_exists(name))


def test_an_alias_that_is_or_leads_to_somebody_elses_is_not_taken(collections):
    from qdrant_client import models

    alias, theirs = collections.alias, f"{collections.alias}-theirs"
    _make_strange(collections, theirs)
    lead = models.CreateAlias(collection_name=theirs, alias_name=alias)
    change = [models.CreateAliasOperation(create_alias=lead)]
    collections.connection.write(lambda client: client.update_collection_aliases(change))
    ours = _made(collections).name
    with pytest.raises(PermanentFailure, match="did not make"):
        collections.make_live(ours)
    assert collections.live() == theirs
    collections.connection.write(lambda client: client.delete_collection(theirs))
    _make_strange(collections, alias)
    for call in (collections.live, partial(collections.make_live, ours)):
        with pytest.raises(PermanentFailure, match=f"{alias} that citeloom did not make"):
            call()


def test_a_collection_is_built_once_its_points_are_in(grpc):
    index = _made(grpc)
    index.defer_indexing(4_000)
    index.upsert(make_points(range(4_000)))
    assert _info(grpc, index.name).config.optimizer_config.indexing_threshold == 0
    index.build_graph()
    index.defer_indexing(100)  # a small part of the collection
    optimizer = _info(grpc, index.name).config.optimizer_config
    assert optimizer.indexing_threshold > 0
    # Filled in many, searched in as few as the server likes.
    assert optimizer.default_segment_number == 0
    _build_small_ones_too(grpc, index.name)
    index.build_graph(wait=True)
    info = _info(grpc, index.name)
    assert info.status == "green"
    assert info.indexed_vectors_count >= 4_000


def _build_small_ones_too(collections, name):
    """Let the server build graphs for collections that it would search without one."""
    from qdrant_client import models

    config = models.OptimizersConfigDiff(indexing_threshold=50)
    graph = models.HnswConfigDiff(full_scan_threshold=50)
    collections.connection.write(
        lambda client: client.update_collection(name, optimizers_config=config, hnsw_config=graph)
    )
