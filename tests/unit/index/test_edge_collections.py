"""The collections of an alias on Qdrant Edge: which is live, also for other processes, and taking one away."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from pipeline.errors import PermanentFailure, SettingError, TransientFailure
from pipeline.index.edge import LAYOUT_FILE, EdgeCollections
from pipeline.storage.writing import write_whole
from tests.unit.index.building import LAYOUT, make_points

OTHER = replace(LAYOUT, form="title")
FIRST, SECOND = LAYOUT.collection("citeloom"), OTHER.collection("citeloom")


@pytest.fixture
def collections(tmp_path: Path) -> Iterator[EdgeCollections]:
    """The collections of an alias whose folder is not there yet."""
    made = EdgeCollections(tmp_path / "qdrant-edge" / "citeloom", "citeloom", patience=0.2)
    yield made
    made.close()


def _make_both(collections: EdgeCollections) -> None:
    collections.collection(FIRST).create(LAYOUT)
    collections.collection(SECOND).create(OTHER)
    collections.make_live(FIRST)


def _pretend_both(collections: EdgeCollections) -> None:
    """As `_make_both`, for tests that open neither: a real one takes a second of a busy disk."""
    for layout, name in ((LAYOUT, FIRST), (OTHER, SECOND)):
        write_whole(collections.folder / name / LAYOUT_FILE, json.dumps({"layout": asdict(layout)}).encode())
    collections.make_live(FIRST)


def test_there_is_nothing_before_the_first(collections: EdgeCollections) -> None:
    assert (collections.live(), collections.names()) == (None, [])
    assert collections.collection(FIRST).layout() is None
    assert not collections.folder.parent.exists()


def test_a_collection_is_the_same_object_every_time(collections: EdgeCollections) -> None:
    assert collections.collection(FIRST) is collections.collection(FIRST)
    assert collections.collection(FIRST) is not collections.collection(SECOND)
    assert collections.collection(FIRST).name == FIRST


def test_layouts_lie_side_by_side_and_one_is_live(collections: EdgeCollections) -> None:
    _make_both(collections)
    collections.collection(FIRST).upsert(make_points([1, 2]))
    collections.collection(SECOND).upsert(make_points([3]))
    assert collections.names() == sorted([FIRST, SECOND])
    assert collections.live() == FIRST
    collections.make_live(SECOND)
    assert collections.live() == SECOND
    assert [collections.collection(name).count() for name in (FIRST, SECOND)] == [2, 1]


def test_what_is_live_outlives_the_process(collections: EdgeCollections) -> None:
    _pretend_both(collections)
    again = EdgeCollections(collections.folder, "citeloom")
    assert (again.live(), again.names()) == (FIRST, sorted([FIRST, SECOND]))


def test_only_what_is_there_can_be_made_live(collections: EdgeCollections) -> None:
    _pretend_both(collections)
    for name in ("another", "..", ""):
        with pytest.raises(PermanentFailure, match="there is no collection"):
            collections.make_live(name)
    assert collections.live() == FIRST


def test_none_is_live_where_the_folder_was_deleted(collections: EdgeCollections) -> None:
    _pretend_both(collections)
    collections.collection(FIRST).folder.rename(collections.folder.parent / "elsewhere")
    assert collections.live() is None
    assert collections.names() == [SECOND]


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"collection": 3}', '{"collection": null}'])
def test_a_file_that_names_no_collection_is_named(collections: EdgeCollections, content: str) -> None:
    collections.folder.mkdir(parents=True)
    (collections.folder / "live.json").write_text(content)
    with pytest.raises(PermanentFailure, match=r"live\.json does not name the collection.*delete it"):
        collections.live()


def test_folders_of_others_are_not_listed_and_not_dropped(collections: EdgeCollections) -> None:
    _pretend_both(collections)
    for name in ("segments", ".hidden"):
        (collections.folder / name).mkdir()
    assert collections.names() == sorted([FIRST, SECOND])
    with pytest.raises(PermanentFailure, match="segments that citeloom did not make"):
        collections.drop("segments")
    assert (collections.folder / "segments").is_dir()


@pytest.mark.parametrize("name", ["", ".", "..", "../elsewhere", "a/b", ".hidden"])
def test_a_name_that_leads_elsewhere_is_refused(collections: EdgeCollections, name: str) -> None:
    for ask in (collections.collection, collections.drop):
        with pytest.raises(SettingError, match="cannot name a collection"):
            ask(name)


def test_the_live_collection_is_not_dropped(collections: EdgeCollections) -> None:
    _pretend_both(collections)
    with pytest.raises(SettingError, match="make another one live"):
        collections.drop(FIRST)
    assert collections.names() == sorted([FIRST, SECOND])


def test_a_collection_that_was_dropped_is_gone_and_can_be_made_again(collections: EdgeCollections) -> None:
    _make_both(collections)
    collections.collection(SECOND).upsert(make_points([1]))
    collections.drop(SECOND)
    collections.drop(SECOND)
    assert collections.names() == [FIRST]
    assert collections.collection(SECOND).count() == 0
    assert [each.name for each in collections.folder.glob("*") if each.is_dir()] == [FIRST]
    collections.collection(SECOND).create(OTHER)
    assert collections.collection(SECOND).count() == 0
    assert collections.names() == sorted([FIRST, SECOND])


def test_what_a_killed_process_began_to_drop_is_cleared_away(collections: EdgeCollections) -> None:
    _pretend_both(collections)
    gone = collections.folder / f".{SECOND}.4711.gone"
    collections.collection(SECOND).folder.rename(gone)
    assert collections.names() == [FIRST]
    collections.drop(SECOND)
    assert not gone.exists()


def test_a_broken_collection_can_be_dropped(collections: EdgeCollections) -> None:
    _make_both(collections)
    collections.close()
    (collections.collection(SECOND).folder / "edge_config.json").write_text("{")
    with pytest.raises(PermanentFailure, match="cannot be used"):
        collections.collection(SECOND).count()
    collections.drop(SECOND)
    assert collections.names() == [FIRST]


_HOLDER = textwrap.dedent(
    """
    import sys, time
    from pathlib import Path
    from pipeline.index.edge import EdgeCollections
    collections = EdgeCollections(Path(sys.argv[1]), "citeloom")
    collections.collection(sys.argv[2]).count()
    print("held", flush=True)
    time.sleep(60)
    """
)


def test_a_collection_that_another_process_uses_is_not_dropped(collections: EdgeCollections) -> None:
    _make_both(collections)
    collections.close()
    command = [sys.executable, "-c", _HOLDER, str(collections.folder), SECOND]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(TransientFailure, match=f"process {holder.pid}"):
            collections.drop(SECOND)
        assert collections.names() == sorted([FIRST, SECOND])
        os.kill(holder.pid, signal.SIGKILL)
    collections.drop(SECOND)
    assert collections.names() == [FIRST]


_READER = textwrap.dedent(
    """
    import sys
    from pathlib import Path
    from pipeline.index.edge import EdgeCollections
    collections = EdgeCollections(Path(sys.argv[1]), "citeloom")
    print(collections.live(), flush=True)
    seen = set()
    while not Path(sys.argv[2]).exists():
        seen.add(str(collections.live()))
    print(*sorted(seen), flush=True)
    """
)


def test_a_process_that_reads_while_another_becomes_live_sees_one_of_the_two(
    collections: EdgeCollections, tmp_path: Path
) -> None:
    _make_both(collections)
    collections.collection(FIRST).hold()
    command = [sys.executable, "-c", _READER, str(collections.folder), str(tmp_path / "done")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == f"{FIRST}\n"
        for name in [SECOND, FIRST] * 50:
            collections.make_live(name)
        (tmp_path / "done").touch()
        assert set(reader.stdout.readline().split()) <= {FIRST, SECOND}
        assert reader.wait() == 0
