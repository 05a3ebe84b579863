"""A zip's directory is read once, cached, and read again when the zip or the cached listing has
changed.
"""

import contextlib
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.corpus.dump.catalogue import read_dump
from pipeline.corpus.dump.folder import FileState
from pipeline.corpus.dump.listing import build_listing, cached_listing
from pipeline.errors import MissingInput
from tests.unit.corpus.building import dump_settings, write_zip

NAMES = [
    "error/2403/2403.00001.html",
    "error/2403/2403.00002.html",
    "error/2404/2404.00001.html",
    "error/x.txt",
]
STATE = FileState(1000, "1")


def listing_of(*names):
    count = len(names)
    numbers = {
        "offset": range(count),
        "bytes": [5] * count,
        "compressed_bytes": [3] * count,
        "crc32": [7] * count,
    }
    return build_listing("errors.zip", [(names, numbers, {})])


def listing_in(cache, names=NAMES, zip_name="errors.zip", state=STATE, made=None):
    """A zip's listing through the cache; made: notes each time that it is made anew."""

    def make():
        if made is not None:
            made.append(names)
        return listing_of(*names)

    return cached_listing(cache, zip_name, state, make)


def rows_of(listing):
    return [listing.rows_of(part).to_pylist() for part in listing.parts]


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


def test_a_second_process_reads_the_rows_that_the_first_has_cached(cache):
    listing, made = listing_in(cache), []
    cached = listing_in(cache, ["never/made"], made=made)
    assert made == []
    assert rows_of(cached) == rows_of(listing) == rows_of(listing_of(*NAMES))
    assert [(part.month, part.strays, part.rows) for part in cached.parts] == [
        ("", True, 1), ("2024-03", False, 2), ("2024-04", False, 1),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("zip_name", "state"),
    [
        ("errors.zip", FileState(1001, "1")),
        ("errors.zip", FileState(1000, "2")),
        ("elsewhere/errors.zip", STATE),
    ],
    ids=["size", "time", "address"],
)
def test_a_zip_of_another_size_time_or_address_is_listed_again(cache, zip_name, state):
    before = listing_in(cache)
    now = listing_in(cache, NAMES[:2], zip_name, state)
    assert [part.rows for part in now.parts] == [2]
    assert rows_of(before) == rows_of(listing_of(*NAMES)), "another process may be at work with it"


def test_the_listing_of_an_earlier_state_and_unfinished_files_are_removed_after_a_day(cache):
    listing_in(cache)
    (old,) = cache.iterdir()
    unfinished = old.with_name(f".{old.name}.12345.tmp")
    unfinished.write_bytes(b"of a run that was killed")
    for file in (old, unfinished):
        os.utime(file, (1, 1))
    listing_in(cache, state=FileState(1001, "1"))
    (new,) = cache.iterdir()
    assert new not in (old, unfinished)


def overwrite_rows(file):
    content = bytearray(file.read_bytes())
    start = pq.read_metadata(file).row_group(1).column(0).data_page_offset
    content[start + 8 : start + 40] = b"\xff" * 32
    file.write_bytes(content)


DAMAGES = {
    "end cut off": lambda file: file.write_bytes(file.read_bytes()[:-100]),
    "another table": lambda file: pq.write_table(pa.table({"x": [1]}), file),
    "within the rows": overwrite_rows,
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_file_is_made_again_at_the_latest_in_the_next_run(cache, name):
    listing_in(cache)
    (file,) = cache.iterdir()
    DAMAGES[name](file)
    made = []
    with contextlib.suppress(MissingInput):
        assert rows_of(listing_in(cache, made=made)) == rows_of(listing_of(*NAMES))
    assert rows_of(listing_in(cache, made=made)) == rows_of(listing_of(*NAMES))
    assert len(made) == 1


def test_a_process_lists_a_zip_again_whose_rows_could_not_be_read(tmp_path):
    write_zip(tmp_path / "errors.zip", dict.fromkeys(NAMES, b"<html>"))
    settings = dump_settings(tmp_path)
    dump = read_dump(settings)
    (file,) = (tmp_path / "data" / "cache" / "zips").iterdir()
    overwrite_rows(file)
    with pytest.raises(MissingInput, match="run again"):
        dump.pages("2024-03")
    assert read_dump(settings).pages("2024-03").num_rows == 2


def test_where_nothing_can_be_written_the_listing_is_held_in_memory(tmp_path):
    (tmp_path / "cache").write_text("a file where the folder would be")
    listing = listing_in(tmp_path / "cache")
    assert rows_of(listing) == rows_of(listing_of(*NAMES))


def test_a_zip_without_a_name_that_is_a_file_has_no_parts(cache):
    assert listing_in(cache, ["error/", "error/2403/"]).parts == ()
    assert listing_in(cache).parts == ()
