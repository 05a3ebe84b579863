"""A zip's directory is read once, cached, and read again when the zip or the cached listing has changed."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.corpus.dump.catalogue import read_dump
from pipeline.corpus.dump.folder import FileState
from pipeline.corpus.dump.listing import Listing, ListingCache, MemoryListing, build_listing
from pipeline.errors import MissingInput
from pipeline.settings import Settings, load_settings
from tests.unit.corpus.building import write_zip

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


def test_a_cached_listing_has_the_rows_that_were_made(cache: ListingCache) -> None:
    made = cache.listing("errors.zip", STATE, CountingMaker(*NAMES))
    kept = cache.listing("errors.zip", STATE, CountingMaker("never/made"))
    assert rows_of(kept) == rows_of(made) == rows_of(listing_of(*NAMES))
    assert [(part.month, part.strays, part.rows) for part in kept.parts] == [
        ("", True, 1), ("2024-03", False, 2), ("2024-04", False, 1),
    ]  # fmt: skip


def test_a_second_process_reads_no_directory(tmp_path: Path, cache: ListingCache) -> None:
    first, second = CountingMaker(*NAMES), CountingMaker(*NAMES)
    cache.listing("errors.zip", STATE, first)
    ListingCache(tmp_path / "cache").listing("errors.zip", STATE, second)
    assert (first.times, second.times) == (1, 0)


@pytest.mark.parametrize("state", [FileState(1001, "1"), FileState(1000, "2")], ids=["size", "time"])
def test_a_zip_of_another_size_or_time_is_listed_again(cache: ListingCache, state: FileState) -> None:
    cache.listing("errors.zip", STATE, CountingMaker(*NAMES))
    again = CountingMaker(*NAMES[:2])
    assert [part.rows for part in cache.listing("errors.zip", state, again).parts] == [2]
    assert again.times == 1


def test_a_zip_of_another_address_is_another(cache: ListingCache) -> None:
    cache.listing("errors.zip", STATE, CountingMaker(*NAMES))
    assert cache.listing("elsewhere/errors.zip", STATE, CountingMaker(*NAMES[:1])).parts[0].rows == 1


@pytest.mark.parametrize(
    "damage",
    [lambda _: b"", lambda content: content[:-100], lambda content: content[100:], lambda _: b"PAR1 rubbish PAR1"],
    ids=["empty", "end cut off", "beginning cut off", "rubbish"],
)
def test_a_damaged_file_is_made_again(cache: ListingCache, damage: object) -> None:
    cache.listing("errors.zip", STATE, CountingMaker(*NAMES))
    file = cache.file("errors.zip")
    file.write_bytes(damage(file.read_bytes()))  # type: ignore[operator]
    again = CountingMaker(*NAMES)
    assert rows_of(cache.listing("errors.zip", STATE, again)) == rows_of(listing_of(*NAMES))
    assert again.times == 1
    assert rows_of(cache.listing("errors.zip", STATE, CountingMaker())) == rows_of(listing_of(*NAMES))


def test_damage_within_the_rows_is_seen_when_they_are_read(cache: ListingCache) -> None:
    cache.listing("errors.zip", STATE, CountingMaker(*NAMES))
    file = cache.file("errors.zip")
    content = bytearray(file.read_bytes())
    start = pq.read_metadata(file).row_group(1).column(0).data_page_offset
    content[start + 8 : start + 40] = b"\xff" * 32
    file.write_bytes(content)
    again = CountingMaker(*NAMES)
    assert rows_of(cache.listing("errors.zip", STATE, again)) == rows_of(listing_of(*NAMES))
    assert again.times >= 1


def test_another_table_in_its_place_is_made_again(cache: ListingCache) -> None:
    file = cache.file("errors.zip")
    file.parent.mkdir()
    pq.write_table(pa.table({"x": [1]}), file)
    assert rows_of(cache.listing("errors.zip", STATE, CountingMaker(*NAMES))) == rows_of(listing_of(*NAMES))


def test_a_zip_that_changed_while_it_was_read_is_named(cache: ListingCache) -> None:
    maker = CountingMaker(*NAMES)
    kept = cache.listing("errors.zip", STATE, maker)
    cache.file("errors.zip").unlink()
    maker.names = ("error/2405/2405.00001.html",)
    with pytest.raises(MissingInput, match=r"errors\.zip has changed while it was read: run again"):
        kept.rows_of(kept.parts[1])


def test_rows_of_a_listing_that_another_process_wrote_are_not_used(cache: ListingCache) -> None:
    """Both have a part at each place, so that only their metadata tells them apart."""
    kept = cache.listing("errors.zip", STATE, CountingMaker(*NAMES))
    cache.listing("errors.zip", FileState(1000, "2"), CountingMaker(*NAMES[1:], "error/2404/2404.00002.html"))
    assert rows_of(kept) == rows_of(listing_of(*NAMES))


def test_the_unfinished_file_of_a_killed_run_is_removed(cache: ListingCache) -> None:
    orphan = cache.file("errors.zip").with_name(f".{cache.file('errors.zip').name}.12345.tmp")
    orphan.parent.mkdir()
    orphan.write_bytes(b"half a file")
    cache.listing("errors.zip", STATE, CountingMaker(*NAMES))
    assert [file.name for file in orphan.parent.iterdir()] == [cache.file("errors.zip").name]


def test_where_nothing_can_be_written_the_listing_is_held_in_memory(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder would be")
    kept = ListingCache(tmp_path / "cache").listing("errors.zip", STATE, CountingMaker(*NAMES))
    assert rows_of(kept) == rows_of(listing_of(*NAMES))


def test_a_zip_without_a_name_that_is_a_file_has_no_parts(cache: ListingCache) -> None:
    assert cache.listing("errors.zip", STATE, CountingMaker("error/", "error/2403/")).parts == ()
    assert cache.listing("errors.zip", STATE, CountingMaker(*NAMES)).parts == ()


def settings_for(folder: Path) -> Settings:
    return load_settings(dump_dir=folder, data=folder / "data")


def test_the_cache_is_below_the_data_root(tmp_path: Path) -> None:
    write_zip(tmp_path / "errors.zip", dict.fromkeys(NAMES, b"<html>"))
    read_dump(settings_for(tmp_path))
    assert len(list((tmp_path / "data" / "cache" / "zips").glob("*.parquet"))) == 1


def test_copying_or_touching_a_zip_leaves_the_digest_of_its_months(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
    file = write_zip(tmp_path / "one" / "errors.zip", dict.fromkeys(NAMES, b"<html>"))
    before = read_dump(settings_for(tmp_path / "one")).digest("2024-03")
    os.utime(file, (1, 1))
    assert read_dump(settings_for(tmp_path / "one")).digest("2024-03") == before
    (tmp_path / "two" / "errors.zip").write_bytes(file.read_bytes())
    assert read_dump(settings_for(tmp_path / "two")).digest("2024-03") == before


def test_another_page_changes_the_digest_of_its_month_alone(tmp_path: Path) -> None:
    pages = dict.fromkeys(NAMES, b"<html>")
    write_zip(tmp_path / "errors.zip", pages)
    before = [read_dump(settings_for(tmp_path)).digest(month) for month in ("2024-03", "2024-04")]
    write_zip(tmp_path / "errors.zip", {**pages, "error/2404/2404.00002.html": b"<html>"})
    after = [read_dump(settings_for(tmp_path)).digest(month) for month in ("2024-03", "2024-04")]
    assert [a == b for a, b in zip(before, after, strict=True)] == [True, False]
