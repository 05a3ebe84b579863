"""Errors of the small stores in SQLite files."""

import pytest

from pipeline.errors import TransientFailure
from pipeline.storage.sqlite import open_store


def fill_disk(file):
    with open_store(file, "facts", "move the file away", "create table facts (fact)") as store:
        store.execute("pragma max_page_count = 2")
        store.execute("insert into facts values (zeroblob(100000))")


def test_of_a_full_disk_the_way_out_is_room_and_not_another_file(tmp_path):
    with pytest.raises(TransientFailure, match=r"disk is full.*: make room on its disk"):
        fill_disk(tmp_path / "facts.sqlite")
