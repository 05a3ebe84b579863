"""The collections of an alias on Qdrant Edge: which is live, also for other processes, and taking
one away.
"""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace

import pytest

from pipeline.errors import PermanentFailure, SettingError, TransientFailure
from pipeline.index.edge import LAYOUT_FILE, EdgeCollections
from pipeline.storage.writing import write_whole
from tests.cases import cases
from tests.unit.index.building import LAYOUT, opened_by_another_process

pytestmark = pytest.mark.slow

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


def _pretend_both(collections):
    """As `_make_both`, for tests that open neither: a real one takes a second of a busy disk."""
    for layout, name in ((LAYOUT, FIRST), (OTHER, SECOND)):
        write_whole(
            collections.folder / name / LAYOUT_FILE, json.dumps({"layout": asdict(layout)}).encode()
        )
    collections.make_live(FIRST)


def test_what_is_live_outlives_the_process_and_only_what_is_there_takes_its_place(collections):
    _pretend_both(collections)
    for name in ("another", "..", ""):
        with pytest.raises(PermanentFailure, match="there is no collection"):
            collections.make_live(name)
    again = EdgeCollections(collections.folder, "citeloom")
    assert (again.live(), again.names()) == (FIRST, sorted([FIRST, SECOND]))


def test_none_is_live_where_the_folder_was_deleted(collections):
    _pretend_both(collections)
    collections.collection(FIRST).folder.rename(collections.folder.parent / "elsewhere")
    assert collections.live() is None
    assert collections.names() == [SECOND]


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"collection": 3}'])
def test_a_file_that_names_no_collection_is_named(collections, content):
    collections.folder.mkdir(parents=True)
    (collections.folder / "live.json").write_text(content)
    with pytest.raises(
        PermanentFailure, match=r"live\.json does not name the collection.*delete it"
    ):
        collections.live()


def test_folders_of_others_are_not_listed_and_not_dropped(collections):
    _pretend_both(collections)
    for name in ("segments", ".hidden"):
        (collections.folder / name).mkdir()
    assert collections.names() == sorted([FIRST, SECOND])
    with pytest.raises(PermanentFailure, match="segments that citeloom did not make"):
        collections.drop("segments")
    assert (collections.folder / "segments").is_dir()


@cases("unit/index/cases.toml", "a_name_that_leads_elsewhere_is_refused", "name")
def test_a_name_that_leads_elsewhere_is_refused(collections, name):
    for ask in (collections.collection, collections.drop):
        with pytest.raises(SettingError, match="cannot name a collection"):
            ask(name)


def test_what_a_killed_process_began_to_drop_is_cleared_away(collections):
    _pretend_both(collections)
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


def test_readers_see_one_of_two_collections_while_the_live_one_changes(collections):
    _pretend_both(collections)
    reader = EdgeCollections(collections.folder, "citeloom")
    with ThreadPoolExecutor(1) as pool:
        changes = pool.submit(
            lambda: [collections.make_live(name) for name in [SECOND, FIRST] * 50]
        )
        while not changes.done():
            assert reader.live() in {FIRST, SECOND}
        changes.result()
