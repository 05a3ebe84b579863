"""A collection on Qdrant Edge: its layout, its lock, its searches, and what is left after a process
was killed; and the collections of an alias: which is live, also for other processes, and taking one
away.
"""

import json
import math
import os
import resource
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.embedding.embedder import SparseRows
from pipeline.errors import PermanentFailure, SettingError, TransientFailure
from pipeline.index.edge import LAYOUT_FILE, EdgeCollections, EdgeIndex
from pipeline.index.edge_folder import SHORTEST_TURN, IndexInUse, holder_of, translate_errors
from pipeline.index.fusion import Ranking, rank
from pipeline.index.passage_index import Layout, QueryVectors, Request
from tests.cases import cases_beside
from tests.processes import PATIENCE, wait_until
from tests.small_disk import small_disk_in
from tests.unit.index.building import (
    LAYOUT,
    best_ten,
    clustered,
    find,
    make_points,
    nearly,
    opened_by_another_process,
    passage_id,
    query,
    three_months,
)

pytestmark = pytest.mark.slow


def _load(index, *batches, layout=LAYOUT):
    index.create(layout)
    for points in batches:
        index.upsert(points)


@pytest.fixture
def loaded(edge):
    """The index with three points, closed."""
    _load(edge, make_points(range(3)))
    edge.close()
    return edge


def _ids(found):
    return [hit.passage_id for hit in found]


def test_vectors_that_the_collection_does_not_have_are_named(edge):
    _load(edge, make_points([1], sparse=False), layout=replace(LAYOUT, sparse=False))
    with pytest.raises(PermanentFailure, match="no sparse vectors to rank by"):
        find(edge, query(), Request(5, "sparse"))


@cases_beside("quantization", "on_disk", "compression")
def test_a_collection_remembers_its_layout(tmp_path, quantization, on_disk, compression):
    layout = Layout("BAAI/bge-m3", 8, sparse=True, form="title", quantization=quantization)
    index = EdgeIndex(tmp_path / layout.collection("a"), on_disk=on_disk)
    _load(index, make_points(range(4)), layout=layout)
    index.create(layout)
    index.close()
    assert EdgeIndex(index.folder).layout() == layout
    assert index.count() == 4
    index.close()
    config = json.loads((index.folder / "edge_config.json").read_bytes())
    assert config["vectors"]["dense"].get("quantization_config", {}) == compression


@pytest.mark.parametrize("content", ["", '{"vectors": {"other": {"size": 3}}}'])
def test_a_folder_that_citeloom_did_not_make_is_refused(edge, content):
    edge.folder.mkdir(parents=True)
    (edge.folder / "edge_config.json").write_text(content)
    for ask in (edge.layout, edge.count, lambda: edge.create(LAYOUT)):
        with pytest.raises(PermanentFailure, match="did not make: set CITELOOM_QDRANT_COLLECTION"):
            ask()
    assert (edge.folder / "edge_config.json").read_text() == content


@cases_beside("content")
def test_a_layout_that_cannot_be_read_is_named(edge, content):
    edge.folder.mkdir(parents=True)
    (edge.folder / LAYOUT_FILE).write_text(content, "latin-1")
    with pytest.raises(PermanentFailure, match=r"citeloom\.json does not hold the layout"):
        edge.count("2024-03")


def test_a_payload_index_that_an_older_collection_lacks_is_made(edge):
    import qdrant_edge

    _load(edge, make_points([1, 2]))
    edge.close()
    shard = qdrant_edge.EdgeShard.load(str(edge.folder))
    shard.update(qdrant_edge.UpdateOperation.delete_field_index("kind"))
    shard.close()
    edge.create(LAYOUT)
    assert edge.values("kind") == ["paragraph"]


def test_a_search_among_some_passages_compares_these_alone(edge):
    _load(edge, *three_months())
    some = tuple(passage_id(number) for number in (2, 17, 31, 500))
    for by in ("dense", "lexical", "sparse"):
        whole = find(edge, query(), Request(40, by))
        expected = [hit for hit in whole if hit.passage_id in some]
        assert find(edge, query(), Request(40, by, passages=some)) == nearly(expected)
    assert find(edge, query(), Request(5, passages=())) == []


def test_equals_come_in_the_order_of_their_ids(edge):
    points = make_points(range(30))
    points.dense[:] = points.dense[0]
    _load(edge, points)
    [found] = rank(edge, [query(0)], Ranking(4, by="dense"))
    assert _ids(found) == sorted(points.ids)[:4]


def test_each_vector_ranks_by_what_it_says(edge):
    _load(edge, *three_months())
    asked = query(5, terms=(130,))
    assert find(edge, asked, Request(40))[0].passage_id == passage_id(5)
    assert _ids(find(edge, asked, Request(40, "lexical"))) == [passage_id(30)]
    with_the_term = {passage_id(number) for number in range(2, 40, 3)}
    assert set(_ids(find(edge, asked, Request(40, "sparse")))) <= with_the_term


@pytest.mark.parametrize("quantization", ["turbo4", "turbo2", "int8"])
def test_a_search_over_a_full_segment_and_another_finds_what_an_exact_one_finds(
    tmp_path, quantization
):
    # Edge walks a graph only beyond 10 MB.
    edge = EdgeIndex(tmp_path / "passages", segment_points=5_200)
    count, dimensions = 6_300, 1_024
    points = make_points(range(count), sparse=False, dense=clustered(count, dimensions))
    points = replace(points, lexical=SparseRows.nothing(count))
    _load(edge, points, layout=Layout("a model", dimensions, quantization=quantization))
    with edge.in_use() as shard:
        info = shard.info()
    assert info.segments_count == 2
    assert 5_200 <= info.indexed_vectors_count < count

    queries = clustered(20, dimensions, seed=2)
    wanted = [QueryVectors(row, SparseRows.nothing(1).row(0)) for row in queries]
    nearest = np.argsort(-(queries @ points.dense.T), axis=1)[:, :10]
    truth = {(number, points.ids[near]) for number, row in enumerate(nearest) for near in row}
    for exact, least in ((True, 0.99), (False, 0.95)):
        found = best_ten(edge, wanted, exact=exact)
        assert len(truth & found) >= least * len(truth)
    edge.close()


def test_an_older_collection_gets_other_bounds_of_segments_and_keeps_its_storage(tmp_path):
    layout, file = Layout("a model", 8), tmp_path / "passages" / "edge_config.json"
    older = EdgeIndex(tmp_path / "passages", on_disk=True, segment_points=200)
    _load(older, make_points(range(4), sparse=False), layout=layout)
    older.close()
    before = json.loads(file.read_bytes())
    index = EdgeIndex(tmp_path / "passages", segment_points=6_400)
    assert index.count() == 4
    index.close()
    after = json.loads(file.read_bytes())
    assert before.pop("optimizers")["indexing_threshold"] == 3
    assert after.pop("optimizers")["indexing_threshold"] == 100
    assert after == before


def test_a_folder_that_vanished_under_an_open_index_is_made_anew(edge):
    _load(edge, make_points([1]))
    shutil.rmtree(edge.folder)
    assert edge.count("2024-03") == 0
    _load(edge, make_points([2]))
    assert [identifier for identifier, _ in edge.contents("2024-03")] == [passage_id(2)]


def test_a_folder_that_a_killed_process_did_not_complete_is_no_collection_and_goes(edge):
    edge.create(LAYOUT)
    edge.close()
    orphan = edge.folder.rename(edge.folder.with_name(f".{edge.folder.name}.4711.new"))
    assert edge.layout() is None
    edge.create(LAYOUT)
    assert not orphan.exists()
    assert edge.layout() == LAYOUT


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 200 MB in memory: a new collection wants 160 MB."""
    with small_disk_in(tmp_path, 200) as disk:
        yield disk


_FILLER = """
import sys
from dataclasses import replace
from pathlib import Path
import numpy as np
from pipeline.errors import PermanentFailure
from pipeline.index.edge import EdgeIndex
from tests.unit.index.building import LAYOUT, make_points
index = EdgeIndex(Path(sys.argv[1]))
index.create(replace(LAYOUT, dimensions=1024))
dense = np.ones((500, 1024), np.float32)
try:
    for first in range(0, 500_000, 500):
        index.upsert(make_points(range(first, first + 500), dense=dense))
        print(first, flush=True)
except PermanentFailure as error:
    print(error, flush=True)
"""


def test_a_full_disk_stops_a_load_with_words_and_keeps_what_was_acknowledged(small_disk):
    # In a process of its own: if Edge wrote on, the kernel would kill it.
    command = [sys.executable, "-c", _FILLER, str(small_disk / "passages")]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    *acknowledged, reason = done.stdout.splitlines()
    assert "make room" in reason
    assert len(acknowledged) >= 5
    index = EdgeIndex(small_disk / "passages")
    assert index.count() >= len(acknowledged) * 500
    with pytest.raises(PermanentFailure, match="make room"):
        EdgeIndex(small_disk / "another").create(LAYOUT)
    index.close()


def test_threads_that_ask_first_at_once_open_the_folder_once(loaded):
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda _: loaded.count(), range(8))) == [3] * 8


def test_a_process_lets_go_of_the_folder_after_its_requests_and_not_during_a_long_one(loaded):
    idle = EdgeIndex(loaded.folder, idle=0.1)
    with idle.in_use():
        time.sleep(0.5)
        assert holder_of(idle.folder) is not None
    wait_until(lambda: holder_of(idle.folder) is None, "an idle process lets go")
    with opened_by_another_process(idle.folder):
        pass
    assert loaded.count() == 3


def test_a_process_keeps_the_folder_open_between_requests_until_another_waits_for_it(loaded):
    assert loaded.count() == 3
    time.sleep(2 * SHORTEST_TURN)
    assert holder_of(loaded.folder) is not None
    with opened_by_another_process(loaded.folder):
        assert holder_of(loaded.folder) != os.getpid()
    assert loaded.count() == 3


def test_who_does_not_get_the_folder_is_told_who_holds_it_and_changes_no_file_of_it(loaded):
    """Edge's own lock comes after the segments have been opened, which writes to their files."""

    def times():
        files = filter(Path.is_file, loaded.folder.rglob("*"))
        return {file: file.stat().st_mtime_ns for file in files}

    with opened_by_another_process(loaded.folder) as holder:
        before = times()
        assert loaded.layout() == LAYOUT
        for wait in (True, False):
            with pytest.raises(TransientFailure, match=f"process {holder.pid}"):
                loaded.count(wait=wait)
        assert times() == before
    assert loaded.count() == 3, "a killed process lets go of it"


def _request(folder):
    """Ask for the folder, as another process does."""
    folder.with_name(f"{folder.name}.requested").touch()


def test_beside_a_long_request_others_go_on_although_another_process_waits(loaded):
    with loaded.in_use():
        time.sleep(SHORTEST_TURN)
        _request(loaded.folder)
        assert loaded.count(wait=False) == loaded.count() == 3
        assert holder_of(loaded.folder) is not None


def test_a_request_that_does_not_wait_fails_at_once_although_another_process_waits_too(loaded):
    patient = EdgeIndex(loaded.folder, patience=math.inf)  # which no wait can take
    with opened_by_another_process(loaded.folder):
        _request(loaded.folder)
        with pytest.raises(IndexInUse):
            patient.count(wait=False)


def test_busy_threads_that_waited_for_the_folder_let_others_have_their_turn(loaded):
    patient, other = (EdgeIndex(loaded.folder, patience=PATIENCE) for _ in range(2))
    ended = threading.Event()

    def load_and_count():
        while not ended.is_set():
            patient.upsert(make_points(range(3)))
            assert patient.count() == 3

    with ThreadPoolExecutor(4) as pool:
        with opened_by_another_process(loaded.folder):
            busy = [pool.submit(load_and_count) for _ in range(4)]
            time.sleep(1.5)
        try:
            for _ in range(3):
                assert other.count() == 3
                other.close()
        finally:
            ended.set()
        assert [each.result() for each in busy] == [None] * 4
    patient.close()


def test_a_panic_inside_edge_is_a_failure_that_names_the_folder(loaded):
    import qdrant_edge

    shard = qdrant_edge.EdgeShard.load(str(loaded.folder))
    broken = qdrant_edge.Point(1, {"sparse": qdrant_edge.SparseVector([1, 2], [1.0])})
    with (
        pytest.raises(PermanentFailure, match="passages cannot be used"),
        translate_errors(loaded.folder),
    ):
        shard.update(qdrant_edge.UpdateOperation.upsert_points([broken]))
    with pytest.raises(KeyboardInterrupt), translate_errors(loaded.folder):
        raise KeyboardInterrupt


def test_a_process_without_open_files_to_spare_is_told_so(loaded):
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, limits[1]))
    taken = []
    try:
        with suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        os.close(taken.pop())
        with pytest.raises(PermanentFailure, match=r"Too many open files.*ulimit -n") as caught:
            loaded.count()
    finally:
        for file in taken:
            os.close(file)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert "delete" not in str(caught.value)


OTHER = replace(LAYOUT, form="title")
FIRST, SECOND = LAYOUT.collection("citeloom"), OTHER.collection("citeloom")


@pytest.fixture
def collections(tmp_path):
    """The collections of an alias whose folder is not there yet."""
    made = EdgeCollections(tmp_path / "qdrant-edge" / "citeloom", "citeloom", patience=0.2)
    yield made
    made.close()


def _make_both(collections):
    collections.collection(FIRST).create(LAYOUT)
    collections.collection(SECOND).create(OTHER)
    collections.make_live(FIRST)


@cases_beside("content")
def test_a_file_that_names_no_collection_is_named(collections, content):
    collections.folder.mkdir(parents=True)
    (collections.folder / "live.json").write_text(content)
    with pytest.raises(
        PermanentFailure, match=r"live\.json does not name the collection.*delete it"
    ):
        collections.live()


def test_folders_of_others_are_not_listed_and_not_dropped(collections):
    _make_both(collections)
    for name in ("segments", ".hidden"):
        (collections.folder / name).mkdir()
    assert collections.names() == sorted([FIRST, SECOND])
    with pytest.raises(PermanentFailure, match="segments that citeloom did not make"):
        collections.drop("segments")
    assert (collections.folder / "segments").is_dir()


@cases_beside("name")
def test_a_name_that_leads_elsewhere_is_refused(collections, name):
    for ask in (collections.collection, collections.drop):
        with pytest.raises(SettingError, match="cannot name a collection"):
            ask(name)


def test_what_a_killed_process_began_to_drop_is_cleared_away(collections):
    _make_both(collections)
    gone = collections.folder / f".{SECOND}.4711.gone"
    collections.collection(SECOND).folder.rename(gone)
    assert collections.names() == [FIRST]
    collections.drop(SECOND)
    assert not gone.exists()


def test_a_broken_collection_can_be_dropped(collections):
    _make_both(collections)
    collections.close()
    (collections.collection(SECOND).folder / "edge_config.json").write_text("{")
    with pytest.raises(PermanentFailure, match="cannot be used"):
        collections.collection(SECOND).count()
    collections.drop(SECOND)
    assert collections.names() == [FIRST]


def test_a_collection_that_another_process_uses_is_not_dropped(collections):
    _make_both(collections)
    collections.close()
    with opened_by_another_process(collections.folder / SECOND) as holder:
        with pytest.raises(TransientFailure, match=f"process {holder.pid}"):
            collections.drop(SECOND)
        assert collections.names() == sorted([FIRST, SECOND])
    collections.drop(SECOND)
    assert collections.names() == [FIRST]
