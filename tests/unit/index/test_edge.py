"""A collection on Qdrant Edge: its layout, its lock, its searches, and what is left after a process
was killed.
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

import numpy as np
import pytest

from pipeline.embedding.embedder import SparseRows
from pipeline.errors import PermanentFailure, TransientFailure
from pipeline.index.edge import LAYOUT_FILE, EdgeIndex
from pipeline.index.edge_folder import SHORTEST_TURN, IndexInUse, holder_of, translate_errors
from pipeline.index.fusion import Ranking, rank
from pipeline.index.passage_index import Layout, QueryVectors, Request
from tests.cases import cases
from tests.processes import PATIENCE, wait_until
from tests.small_disk import small_disk_in
from tests.unit.index.building import (
    LAYOUT,
    answers,
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


def _ids(found):
    return [hit.passage_id for hit in found]


def test_vectors_that_the_collection_does_not_have_are_named(edge):
    _load(edge, make_points([1], sparse=False), layout=replace(LAYOUT, sparse=False))
    with pytest.raises(
        PermanentFailure,
        match=r"no sparse vectors to rank by.*CITELOOM_EMBEDDER=bge-m3 and run citeloom reindex",
    ):
        find(edge, query(), Request(5, "sparse"))


@cases("unit/index/cases.toml", "a_collection_remembers_its_layout", ["quantization", "on_disk"])
def test_a_collection_remembers_its_layout(tmp_path, quantization, on_disk):
    layout = Layout("BAAI/bge-m3", 8, sparse=True, form="title", quantization=quantization)
    index = EdgeIndex(tmp_path / layout.collection("a"), on_disk=on_disk)
    _load(index, make_points(range(4)), layout=layout)
    index.create(layout)
    index.close()
    assert EdgeIndex(index.folder).layout() == layout
    assert index.count() == 4
    index.close()


@pytest.mark.parametrize("content", ["", '{"vectors": {"other": {"size": 3}}}'])
def test_a_folder_that_citeloom_did_not_make_is_refused(edge, content):
    edge.folder.mkdir(parents=True)
    (edge.folder / "edge_config.json").write_text(content)
    for ask in (edge.layout, edge.count, lambda: edge.create(LAYOUT)):
        with pytest.raises(PermanentFailure, match="did not make: set CITELOOM_QDRANT_COLLECTION"):
            ask()
    assert (edge.folder / "edge_config.json").read_text() == content


@pytest.mark.parametrize(
    "content", [b"junk", b"[]", b"{}", b'{"layout": {"model": "a"}}', b'{"layout": 3}', b"\xff\xfe"]
)
def test_a_layout_that_cannot_be_read_is_named(edge, content):
    edge.folder.mkdir(parents=True)
    (edge.folder / LAYOUT_FILE).write_bytes(content)
    with pytest.raises(PermanentFailure, match=r"citeloom\.json does not hold the layout.*delete"):
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


@pytest.mark.parametrize("layout", [LAYOUT, replace(LAYOUT, quantization="int8")])
def test_a_small_collection_answers_the_same_after_it_settled(edge, layout):
    _load(edge, *three_months(), layout=layout)
    edge.defer_indexing()
    before = answers(edge)
    edge.build_graph(wait=True)
    edge.close()
    assert answers(edge) == [nearly(hits) for hits in before]


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
print("made", flush=True)
try:
    for number in range(1_000):
        points = make_points(range(number * 500, number * 500 + 500))
        index.upsert(replace(points, dense=np.tile(points.dense, (1, 128))))
        print(number, flush=True)
except PermanentFailure as error:
    print(error, flush=True)
"""


def test_a_full_disk_stops_a_load_with_words_and_keeps_what_was_acknowledged(small_disk):
    # In a process of its own: if Edge wrote on, the kernel would kill it.
    command = [sys.executable, "-c", _FILLER, str(small_disk / "passages")]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    _, *acknowledged, reason = done.stdout.splitlines()
    assert "make room" in reason
    assert len(acknowledged) >= 5
    index = EdgeIndex(small_disk / "passages")
    assert index.count() >= len(acknowledged) * 500
    with pytest.raises(PermanentFailure, match="make room"):
        EdgeIndex(small_disk / "another").create(LAYOUT)
    index.close()


def test_threads_that_ask_first_at_once_open_the_folder_once(edge):
    _load(edge, make_points(range(3)))
    edge.close()
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda _: edge.count(), range(8))) == [3] * 8


# Loads or searches until the tests' process closes its standard input or is gone, as a long run or a
# busy server does; the second argument says which.
_BUSY = """
import sys
from pathlib import Path
from threading import Thread
from pipeline.index.edge import EdgeIndex
from tests.unit.index.building import make_points
index = EdgeIndex(Path(sys.argv[1]))
def work():
    while True:
        if sys.argv[2] == "load":
            index.upsert(make_points(range(100)))
        else:
            index.count()
index.count()
for thread in range(1 if sys.argv[2] == "load" else 4):
    Thread(target=work, daemon=True).start()
print("busy", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("work", ["load", "search"])
def test_beside_a_busy_process_each_gets_its_turn(edge, work):
    _load(edge, make_points(range(100)))
    edge.close()
    patient = EdgeIndex(edge.folder, patience=PATIENCE)
    command = [sys.executable, "-c", _BUSY, str(edge.folder), work]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as busy:
        try:
            assert busy.stdout.readline() == "busy\n"
            for _ in range(3):
                assert patient.count() == 100
                patient.close()
            assert busy.poll() is None
        finally:
            busy.kill()


def test_a_process_lets_go_of_the_folder_after_its_requests_and_not_during_a_long_one(edge):
    _load(edge, make_points(range(3)))
    edge.close()
    idle = EdgeIndex(edge.folder, idle=0.1)
    with idle.in_use():
        time.sleep(0.5)
        assert holder_of(edge.folder) is not None
    wait_until(lambda: holder_of(edge.folder) is None, "an idle process lets go")
    with opened_by_another_process(edge.folder):
        pass
    assert edge.count() == 3


def test_a_process_keeps_the_folder_open_between_requests_until_another_waits_for_it(edge):
    _load(edge, make_points(range(3)))
    time.sleep(2 * SHORTEST_TURN)
    assert holder_of(edge.folder) is not None
    with opened_by_another_process(edge.folder):
        assert holder_of(edge.folder) != os.getpid()
    assert edge.count() == 3


def test_who_does_not_get_the_folder_changes_no_file_of_it(edge):
    """Edge's own lock comes after the segments have been opened, which writes to their files."""
    _load(edge, make_points(range(3)))
    edge.close()
    with opened_by_another_process(edge.folder):
        before = _times(edge.folder)
        with pytest.raises(IndexInUse):
            edge.count()
        assert _times(edge.folder) == before


def _times(folder):
    return {file: file.stat().st_mtime_ns for file in folder.rglob("*") if file.is_file()}


def _request(folder):
    """Ask for the folder, as another process does."""
    folder.with_name(f"{folder.name}.requested").touch()


def test_beside_a_long_request_others_go_on_although_another_process_waits(edge):
    _load(edge, make_points(range(3)))
    with edge.in_use():
        time.sleep(SHORTEST_TURN)
        _request(edge.folder)
        assert edge.count(wait=False) == edge.count() == 3
        assert holder_of(edge.folder) is not None


def test_a_request_that_does_not_wait_fails_at_once_although_another_process_waits_too(edge):
    edge.create(LAYOUT)
    edge.close()
    patient = EdgeIndex(edge.folder, patience=math.inf)  # which no wait can take
    with opened_by_another_process(edge.folder):
        _request(edge.folder)
        with pytest.raises(IndexInUse):
            patient.count(wait=False)


def test_who_waited_for_the_folder_does_not_keep_it_for_longer(edge):
    _load(edge, make_points(range(3)))
    edge.close()
    patient, other = (EdgeIndex(edge.folder, patience=PATIENCE) for _ in range(2))
    ended = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        with opened_by_another_process(edge.folder):
            first = pool.submit(patient.count)
            time.sleep(1.5)
        assert first.result() == 3
        busy = pool.submit(lambda: {patient.count() for _ in iter(ended.is_set, True)})
        try:
            assert other.count() == 3
        finally:
            ended.set()
        assert busy.result() <= {3}
    patient.close()
    other.close()


def test_a_panic_inside_edge_is_a_failure_that_names_the_folder(edge):
    import qdrant_edge

    edge.create(LAYOUT)
    edge.close()
    shard = qdrant_edge.EdgeShard.load(str(edge.folder))
    broken = qdrant_edge.Point(1, {"sparse": qdrant_edge.SparseVector([1, 2], [1.0])})
    with (
        pytest.raises(PermanentFailure, match=r"passages cannot be used.*delete the folder"),
        translate_errors(edge.folder),
    ):
        shard.update(qdrant_edge.UpdateOperation.upsert_points([broken]))
    with pytest.raises(KeyboardInterrupt), translate_errors(edge.folder):
        raise KeyboardInterrupt


def test_a_process_without_open_files_to_spare_is_told_so(edge):
    edge.create(LAYOUT)
    edge.close()
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, limits[1]))
    taken = []
    try:
        with suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        os.close(taken.pop())
        with pytest.raises(PermanentFailure, match=r"Too many open files.*ulimit -n") as caught:
            edge.count("2024-03")
    finally:
        for file in taken:
            os.close(file)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert "delete" not in str(caught.value)


def test_a_second_process_is_told_who_holds_the_index(edge):
    edge.create(LAYOUT)
    edge.close()
    with opened_by_another_process(edge.folder) as holder:
        assert edge.layout() == LAYOUT
        for wait in (True, False):
            with pytest.raises(
                TransientFailure, match=f"process {holder.pid}.*CITELOOM_QDRANT_URL"
            ):
                edge.count("2024-03", wait=wait)
    assert edge.count("2024-03") == 0, "a killed process lets go of it"
