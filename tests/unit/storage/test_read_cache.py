"""What many blocks read of the same files: each once, and kept for the next process in a small SQLite
file.
"""

import pytest

from pipeline.errors import TransientFailure
from pipeline.storage.read_cache import FactStore, once, read_cache, remember
from pipeline.storage.sqlite import open_store


class Reader:
    """Counts how often it reads."""

    def __init__(self):
        self.calls = 0

    def __call__(self):
        self.calls += 1
        return "fact"


def test_a_value_is_computed_once_in_a_block_and_each_time_without_one():
    reader = Reader()
    for _ in range(2):
        once("key", reader)
    assert reader.calls == 2
    with read_cache():
        assert [once("key", reader), once("key", reader)] == ["fact", "fact"]
        with read_cache():
            once("key", reader)
    assert reader.calls == 3


@pytest.mark.parametrize("damaged", [False, True])
def test_a_fact_is_kept_while_its_version_is_the_same_and_read_again_where_the_file_is_damaged(
    tmp_path, damaged
):
    reader = Reader()
    for version in ("1", "1", "2"):
        with read_cache(tmp_path):
            assert remember("name", version, reader) == "fact"
    assert reader.calls == 2
    file = tmp_path / "facts.sqlite"
    if damaged:
        file.write_bytes(b"damaged" * 1000)
    store = FactStore(file)  # as the next process opens it
    assert store.find("name", "2") == (None if damaged else "fact")
    store.add("name", "3", "other")
    store.close()
    assert FactStore(file).find("name", "3") == "other"


def test_without_a_readable_file_facts_are_computed_each_time(tmp_path):
    (tmp_path / "facts.sqlite").mkdir()
    reader = Reader()
    for _ in range(2):
        with read_cache(tmp_path):
            assert remember("name", "1", reader) == "fact"
    assert reader.calls == 2


def fill_disk(file):
    with open_store(file, "facts", "move the file away", "create table facts (fact)") as store:
        store.execute("pragma max_page_count = 2")
        store.execute("insert into facts values (zeroblob(100000))")


def test_of_a_full_disk_the_way_out_is_room_and_not_another_file(tmp_path):
    with pytest.raises(TransientFailure, match=r"disk is full.*: make room on its disk"):
        fill_disk(tmp_path / "facts.sqlite")
