"""The index on Qdrant Edge: its layout, its lock, and what is left after a process was killed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from pipeline.errors import PermanentFailure, TransientFailure
from pipeline.index.edge import EdgeIndex, _cannot_be_used
from pipeline.index.passage_index import Layout, Restriction
from tests.unit.index.building import LAYOUT, MODEL, make_point, three_months


def test_reading_makes_no_folder(edge: EdgeIndex) -> None:
    assert edge.layout() is None
    assert edge.count("2024-03") == 0
    assert edge.models() == []
    assert not edge.folder.parent.exists()


def test_a_collection_remembers_its_layout(edge: EdgeIndex) -> None:
    edge.ensure_collection(Layout(8, sparse_idf=False))
    assert edge.layout() == Layout(8, sparse_idf=False)


@pytest.mark.parametrize("other", [Layout(16, True), Layout(8, False)])
def test_a_collection_of_another_layout_is_refused(edge: EdgeIndex, other: Layout) -> None:
    edge.ensure_collection(LAYOUT)
    with pytest.raises(PermanentFailure, match="CITELOOM_QDRANT_COLLECTION"):
        edge.ensure_collection(other)
    assert edge.layout() == LAYOUT


def test_a_folder_that_is_no_collection_of_ours_is_refused(edge: EdgeIndex) -> None:
    edge.folder.mkdir(parents=True)
    (edge.folder / "edge_config.json").write_text('{"vectors": {"other": {"size": 3}}}')
    with pytest.raises(PermanentFailure, match="move it away"):
        edge.ensure_collection(LAYOUT)


def test_points_are_counted_and_listed_by_month(edge: EdgeIndex) -> None:
    edge.ensure_collection(LAYOUT)
    edge.upsert(three_months())
    expected = {point.passage_id: point.payload["digest"] for point in three_months()[1::3]}
    assert edge.ids_of_month("2024-04") == expected
    assert edge.count("2024-04") == len(expected)
    assert edge.models() == [MODEL]


def test_points_that_are_deleted_are_gone(edge: EdgeIndex) -> None:
    edge.ensure_collection(LAYOUT)
    edge.upsert([make_point(1), make_point(2)])
    edge.delete([make_point(1).passage_id, make_point(99).passage_id])
    assert list(edge.ids_of_month("2024-03")) == [make_point(2).passage_id]


def test_points_survive_closing_and_opening(edge: EdgeIndex) -> None:
    edge.ensure_collection(LAYOUT)
    edge.upsert([make_point(1)])
    edge.settle()
    edge.close()
    assert edge.count("2024-03") == 1


def test_a_point_without_sparse_terms_can_be_found(edge: EdgeIndex) -> None:
    from dataclasses import replace

    edge.ensure_collection(LAYOUT)
    bare = replace(make_point(3), sparse_ids=[], sparse_weights=[])
    edge.upsert([bare])
    hits = edge.search(bare.dense, [], [], limit=5, restriction=Restriction())
    assert [hit.passage_id for hit in hits] == [bare.passage_id]


def test_a_folder_that_vanished_under_an_open_index_is_made_anew(edge: EdgeIndex) -> None:
    edge.ensure_collection(LAYOUT)
    edge.upsert([make_point(1)])
    shutil.rmtree(edge.folder)
    assert edge.count("2024-03") == 0
    edge.ensure_collection(LAYOUT)
    edge.upsert([make_point(2)])
    assert list(edge.ids_of_month("2024-03")) == [make_point(2).passage_id]


def test_what_a_killed_process_began_to_make_is_cleared_away(edge: EdgeIndex) -> None:
    orphan = edge.folder.parent / ".passages.4711.new"
    (orphan / "segments").mkdir(parents=True)
    edge.ensure_collection(LAYOUT)
    assert not orphan.exists()
    assert edge.layout() == LAYOUT


def test_a_broken_folder_is_named(edge: EdgeIndex) -> None:
    edge.ensure_collection(LAYOUT)
    for file in edge.folder.rglob("segment.json"):
        file.write_text("{")
    shutil.rmtree(edge.folder / "wal")
    (edge.folder / "wal").write_text("no folder")
    with pytest.raises(PermanentFailure, match=r"cannot be used.*delete the folder"):
        edge.count("2024-03")


@pytest.mark.parametrize("config", ["junk", "[]", '{"vectors": {"dense": 3}}'])
def test_a_configuration_that_is_none_is_named(edge: EdgeIndex, config: str) -> None:
    edge.folder.mkdir(parents=True)
    (edge.folder / "edge_config.json").write_text(config)
    with pytest.raises(PermanentFailure, match=r"edge_config\.json.*move it away"):
        edge.count("2024-03")


@pytest.mark.parametrize(
    ("reason", "way_out"),
    [
        ("failed to load segment: Permission denied (os error 13)", "CITELOOM_DATA"),
        ('Can\'t init WAL: Os { code: 28, kind: StorageFull, message: "No space left on device" }', "make room"),
        ("IO Error: Too many open files (os error 24)", "ulimit -n"),
    ],
)
def test_a_failure_of_the_system_has_its_reason_and_not_the_advice_to_delete(reason: str, way_out: str) -> None:
    message = _cannot_be_used(Path("/data/edge"), Exception(f"Service runtime error: {reason}"))
    assert reason in message
    assert way_out in message
    assert "delete" not in message


_CRAMPED = textwrap.dedent(
    """
    import os, resource, sys
    from pathlib import Path
    import qdrant_edge
    from pipeline.errors import PermanentFailure
    from pipeline.index.edge import EdgeIndex
    index = EdgeIndex(Path(sys.argv[1]))
    resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
    held = []
    try:
        while True:
            held.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        os.close(held.pop())
    try:
        index.count("2024-03")
    except PermanentFailure as error:
        print(error)
    """
)


def test_a_process_without_open_files_to_spare_is_told_so(edge: EdgeIndex) -> None:
    edge.ensure_collection(LAYOUT)
    edge.close()
    done = subprocess.run(
        [sys.executable, "-c", _CRAMPED, str(edge.folder)], capture_output=True, text=True, check=True
    )
    assert "Too many open files" in done.stdout
    assert "ulimit -n" in done.stdout


def test_the_values_of_a_field_are_listed(edge: EdgeIndex) -> None:
    assert edge.values("categories") == []
    edge.ensure_collection(LAYOUT)
    edge.upsert([make_point(1), make_point(2)])
    assert edge.values("categories") == ["cs.CL", "cs.IR", "stat.ML"]
    assert edge.values("archives") == ["cs", "stat"]


_HOLDER = textwrap.dedent(
    """
    import sys, time
    from pathlib import Path
    from pipeline.index.edge import EdgeIndex
    index = EdgeIndex(Path(sys.argv[1]))
    index.count("2024-03")
    print("held", flush=True)
    time.sleep(600)
    """
)


def _hold(folder: Path) -> subprocess.Popen[str]:
    holder = subprocess.Popen([sys.executable, "-c", _HOLDER, str(folder)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    return holder


def test_a_second_process_is_told_who_holds_the_index(edge: EdgeIndex) -> None:
    edge.ensure_collection(LAYOUT)
    with _hold(edge.folder) as holder:
        with pytest.raises(TransientFailure, match="CITELOOM_QDRANT_URL") as caught:
            edge.count("2024-03")
        os.kill(holder.pid, signal.SIGKILL)
    assert f"process {holder.pid}" in str(caught.value)
    assert edge.count("2024-03") == 0
