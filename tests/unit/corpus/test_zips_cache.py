"""A zip's directory is read once, cached, and read again when the zip or the cached listing has changed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.corpus.dump.catalogue import read_dump
from pipeline.corpus.dump.folder import FileState
from pipeline.corpus.dump.listing import Listing, ListingCache, MemoryListing, build_listing
from pipeline.errors import MissingInput
from tests.unit.corpus.building import dump_settings, write_zip

NAMES = ["error/2403/2403.00001.html", "error/2403/2403.00002.html", "error/2404/2404.00001.html", "error/x.txt"]
STATE = FileState(1000, "1")


def listing_of(*names: str) -> MemoryListing:
    count = len(names)
    numbers = {"offset": range(count), "bytes": [5] * count, "compressed_bytes": [3] * count, "crc32": [7] * count}
    return build_listing("errors.zip", [(names, numbers, {})])


class CountingMaker:
    """Makes a listing, and counts how often."""

    def __init__(self, *names: str) -> None:
        self.names, self.times = names, 0

    def __call__(self) -> MemoryListing:
        self.times += 1
        return listing_of(*self.names)


def rows_of(listing: Listing) -> list[list[dict[str, object]]]:
    return [listing.rows_of(part).to_pylist() for part in listing.parts]


@pytest.fixture
def cache(tmp_path: Path) -> ListingCache:
    return ListingCache(tmp_path / "cache")


def test_a_second_process_reads_the_rows_that_the_first_has_cached(tmp_path: Path, cache: ListingCache) -> None:
    listing = cache.listing("errors.zip", STATE, CountingMaker(*NAMES))
    second = CountingMaker("never/made")
    cached = ListingCache(tmp_path / "cache").listing("errors.zip", STATE, second)
    assert second.times == 0
    assert rows_of(cached) == rows_of(listing) == rows_of(listing_of(*NAMES))
    assert [(part.month, part.strays, part.rows) for part in cached.parts] == [
        ("", True, 1), ("2024-03", False, 2), ("2024-04", False, 1),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("zip_name", "state"),
    [("errors.zip", FileState(1001, "1")), ("errors.zip", FileState(1000, "2")), ("elsewhere/errors.zip", STATE)],
    ids=["size", "time", "address"],
)
def test_a_zip_of_another_size_time_or_address_is_listed_again(
    cache: ListingCache, zip_name: str, state: FileState
) -> None:
    cache.listing("errors.zip", STATE, CountingMaker(*NAMES))
    assert [part.rows for part in cache.listing(zip_name, state, CountingMaker(*NAMES[:2])).parts] == [2]


def overwrite_rows(file: Path) -> None:
    content = bytearray(file.read_bytes())
    start = pq.read_metadata(file).row_group(1).column(0).data_page_offset
    content[start + 8 : start + 40] = b"\xff" * 32
    file.write_bytes(content)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "empty": lambda file: file.write_bytes(b""),
    "end cut off": lambda file: file.write_bytes(file.read_bytes()[:-100]),
    "beginning cut off": lambda file: file.write_bytes(file.read_bytes()[100:]),
    "rubbish": lambda file: file.write_bytes(b"PAR1 rubbish PAR1"),
    "another table": lambda file: pq.write_table(pa.table({"x": [1]}), file),
    "within the rows": overwrite_rows,
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_file_is_made_again(cache: ListingCache, name: str) -> None:
    cache.listing("errors.zip", STATE, CountingMaker(*NAMES))
    DAMAGES[name](cache.file("errors.zip"))
    again = CountingMaker(*NAMES)
    assert rows_of(cache.listing("errors.zip", STATE, again)) == rows_of(listing_of(*NAMES))
    assert again.times >= 1


def test_a_zip_that_changed_while_it_was_read_is_named(cache: ListingCache) -> None:
    maker = CountingMaker(*NAMES)
    listing = cache.listing("errors.zip", STATE, maker)
    cache.file("errors.zip").unlink()
    maker.names = ("error/2405/2405.00001.html",)
    with pytest.raises(MissingInput, match=r"errors\.zip has changed while it was read: run again"):
        listing.rows_of(listing.parts[1])


def test_rows_of_a_listing_that_another_process_wrote_are_not_used(cache: ListingCache) -> None:
    """Both have a part at each place, so that only their metadata tells them apart."""
    listing = cache.listing("errors.zip", STATE, CountingMaker(*NAMES))
    cache.listing("errors.zip", FileState(1000, "2"), CountingMaker(*NAMES[1:], "error/2404/2404.00002.html"))
    assert rows_of(listing) == rows_of(listing_of(*NAMES))


def test_the_unfinished_file_of_a_killed_run_is_removed(cache: ListingCache) -> None:
    orphan = cache.file("errors.zip").with_name(f".{cache.file('errors.zip').name}.12345.tmp")
    orphan.parent.mkdir()
    orphan.write_bytes(b"half a file")
    cache.listing("errors.zip", STATE, CountingMaker(*NAMES))
    assert [file.name for file in orphan.parent.iterdir()] == [cache.file("errors.zip").name]


def test_where_nothing_can_be_written_the_listing_is_held_in_memory(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder would be")
    listing = ListingCache(tmp_path / "cache").listing("errors.zip", STATE, CountingMaker(*NAMES))
    assert rows_of(listing) == rows_of(listing_of(*NAMES))


def test_a_zip_without_a_name_that_is_a_file_has_no_parts(cache: ListingCache) -> None:
    assert cache.listing("errors.zip", STATE, CountingMaker("error/", "error/2403/")).parts == ()
    assert cache.listing("errors.zip", STATE, CountingMaker(*NAMES)).parts == ()


def test_the_digest_of_a_month_follows_its_pages_and_not_the_time_or_place_of_the_zip(tmp_path: Path) -> None:
    def digests() -> list[str]:
        return [read_dump(dump_settings(tmp_path)).digest(month) for month in ("2024-03", "2024-04")]

    pages = dict.fromkeys(NAMES, b"<html>")
    file = write_zip(tmp_path / "errors.zip", pages)
    before = digests()
    assert len(list((tmp_path / "data" / "cache" / "zips").glob("*.parquet"))) == 1
    os.utime(file, (1, 1))
    assert digests() == before
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "errors.zip").write_bytes(file.read_bytes())
    assert read_dump(dump_settings(tmp_path / "copy")).digest("2024-03") == before[0]
    write_zip(file, {**pages, "error/2404/2404.00002.html": b"<html>"})
    assert [new == old for new, old in zip(digests(), before, strict=True)] == [True, False]
