"""The dump: listing, months, subsets, strays, zips that cannot be read, loose pages, and the cache of
listings.
"""

import contextlib
import os
import zlib
from contextlib import closing

import pyarrow.parquet as pq
import pytest

from pipeline.corpus.dump.catalogue import months_in_dump, read_dump
from pipeline.corpus.dump.folder import FileState, LocalFile
from pipeline.corpus.dump.listing import build_listing, cached_listing
from pipeline.corpus.dump.member import LARGEST_PAGE, Member, MemberError
from pipeline.corpus.dump.reader import MemberReader
from pipeline.errors import MissingInput, SettingError
from tests.cases import cases_beside
from tests.unit.corpus.building import dump_settings, members_of, put_loose, write_zip
from tests.unit.corpus.hostile_zips import GOOD

PAGE = b"<html>loose</html>"


def put(folder, path, content=PAGE):
    return put_loose(folder, path, content)


@cases_beside("zip_name", "member", "subset")
def test_the_subset_comes_from_folder_or_zip(tmp_path, zip_name, member, subset):
    write_zip(tmp_path / zip_name, {member: b"<html>"})
    assert [page.subset for page in members_of(dump_settings(tmp_path))] == [subset]


def test_months_are_those_of_the_chosen_subsets(tmp_path):
    write_zip(
        tmp_path / "errors.zip",
        {"error/2403/2403.00001.html": b"", "error/9802/quant-ph9802040.html": b""},
    )
    write_zip(
        tmp_path / "warnings.zip",
        {"warning/2404/2404.00001.html": b"", "warning/": b"", "notes.txt": b""},
    )
    put(tmp_path, "error/2405/2405.00001.html")
    (tmp_path / "folder.zip").mkdir()
    months = ["1998-02", "2024-03", "2024-04", "2024-05"]
    assert months_in_dump(dump_settings(tmp_path)) == months
    assert months_in_dump(dump_settings(tmp_path, subsets="warning")) == ["2024-04"]


@cases_beside("zip_name", "member", "why")
def test_a_dump_without_a_page_is_a_wrong_setting(tmp_path, zip_name, member, why):
    write_zip(tmp_path / zip_name, {member: b"x"})
    with pytest.raises(
        SettingError, match=rf"no arXiv page is in .*{why}.*CITELOOM_SUBSETS is error"
    ):
        months_in_dump(dump_settings(tmp_path, subsets="error"))


def test_a_folder_that_is_missing_or_holds_no_page_is_named(tmp_path):
    with pytest.raises(SettingError, match=r"CITELOOM_DUMP_DIR.*nowhere"):
        months_in_dump(dump_settings(tmp_path / "nowhere"))
    (tmp_path / "2403").mkdir()
    (tmp_path / "2403" / "notes.txt").touch()
    (tmp_path / "2403.html").touch()
    with pytest.raises(
        SettingError, match=r"no \.zip file is in .*, nor any page in a folder <yymm>"
    ):
        months_in_dump(dump_settings(tmp_path))


UNUSABLE = {
    "link to nothing": (
        lambda file: file.symlink_to("gone.zip"),
        r"cannot be read \(No such file.*move it out of",
    ),
    "pipe": (os.mkfifo, r"cannot be read \(it is no regular file\)"),
    "empty zip": (lambda file: write_zip(file, {}), "is an empty zip"),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_a_zip_that_cannot_be_read_is_named(tmp_path, name):
    write, why = UNUSABLE[name]
    write(tmp_path / "errors.zip")
    with pytest.raises(MissingInput, match=rf"errors\.zip {why}"):
        months_in_dump(dump_settings(tmp_path))


def test_a_zip_in_place_of_the_folder_is_named(tmp_path):
    file = write_zip(tmp_path / "errors.zip", GOOD)
    with pytest.raises(SettingError, match=r"errors\.zip is a file: set it to the folder"):
        months_in_dump(dump_settings(file))


def test_a_zip_whose_name_is_not_utf8_leaves_the_pages_of_the_others_and_is_no_months(tmp_path):
    for name in ("errors.zip", "\udcff-warnings.zip"):
        write_zip(tmp_path / name, GOOD)
    dump = read_dump(dump_settings(tmp_path))
    assert dump.count_pages("2024-03") == len(GOOD)
    assert list(dump.broken.values()) == [
        f"{tmp_path}/?-warnings.zip: its name is not UTF-8: rename it"
    ]
    assert list(dump.strays("2024-03")) == []


def refusal(folder, page):
    """Why a page cannot be read."""
    with MemberReader(folder) as reader, pytest.raises(MemberError) as caught:
        reader.read(page)
    return caught.value.reason


def test_a_zip_cut_off_after_it_was_listed_loses_the_page(tmp_path):
    file = write_zip(tmp_path / "errors.zip", GOOD)
    (page, *_) = members_of(dump_settings(tmp_path))
    file.write_bytes(file.read_bytes()[: page.offset + 70])
    assert refusal(tmp_path, page) == "corrupt_member"


# Loose pages


def test_loose_pages_need_no_zip(tmp_path):
    put(tmp_path, "2504/2504.00001.html")
    put(tmp_path, "2504/2504.00002.html", b"")
    put(tmp_path, "errors/2505/2505.00002v3.html")
    put(tmp_path, "9802/quant-ph9802040.html")
    assert months_in_dump(dump_settings(tmp_path)) == ["1998-02", "2025-04", "2025-05"]
    page, empty = members_of(dump_settings(tmp_path), "2025-04")
    assert page == Member(
        "2504.00001",
        "unrated",
        "",
        "2504/2504.00001.html",
        0,
        len(PAGE),
        len(PAGE),
        zlib.crc32(PAGE),
    )
    (rated,) = members_of(dump_settings(tmp_path), "2025-05")
    assert (rated.arxiv_id, rated.subset) == ("2505.00002", "error")
    with MemberReader(tmp_path) as reader:
        assert [reader.read(member) for member in (page, rated, empty)] == [PAGE, PAGE, b""]


def test_a_loose_page_goes_before_those_in_zips(tmp_path):
    write_zip(
        tmp_path / "no-problem.zip", {"no_problem/2403/2403.00001.html": b"<html>older</html>"}
    )
    put(tmp_path, "error/2403/2403.00001.html")
    assert [(page.zip, page.subset) for page in members_of(dump_settings(tmp_path))] == [
        ("", "error"),
        ("no-problem.zip", "no_problem"),
    ]


def test_a_name_in_a_loose_folder_that_is_no_page_is_a_stray(tmp_path):
    put(tmp_path, "2403/2403.00001.html")
    for name in ("2404.00001.html", "notes.txt", "images/x1.png", "2403.0000\udcff.html"):
        put(tmp_path, f"2403/{name}")
    (tmp_path / "2403" / "2403.00009.html").symlink_to(tmp_path / "gone.html")
    assert [page.arxiv_id for page in members_of(dump_settings(tmp_path))] == ["2403.00001"]
    strays = {
        place: reason for place, reason, _ in read_dump(dump_settings(tmp_path)).strays("2024-03")
    }
    assert strays == {
        "2403/2404.00001.html": "not_an_arxiv_page",
        "2403/notes.txt": "not_an_arxiv_page",
        "2403/images": "not_an_arxiv_page",
        "2403/2403.0000?.html": "not_an_arxiv_page",
        "2403/2403.00009.html": "unreadable",
    }


def test_folders_of_other_names_are_none_of_the_dump_and_later_pages_are_seen(tmp_path):
    for place in (
        "2403/2403.00001",
        "2413/2413.00001",
        "drafts/2404/2404.00001",
        ".trash/2405/2405.00001",
    ):
        put(tmp_path, f"{place}.html")
    (tmp_path / "2406").mkdir()
    assert months_in_dump(dump_settings(tmp_path)) == ["2024-03"]
    put(tmp_path, "2403/2403.00002.html")
    put(tmp_path, "2404/2404.00001.html")
    assert len(members_of(dump_settings(tmp_path))) == 2
    assert months_in_dump(dump_settings(tmp_path)) == ["2024-03", "2024-04"]


def test_a_page_is_read_for_its_checksum_once(tmp_path):
    """The second time its bytes are others behind the same size and time, and the checksum is still
    the first.
    """
    file = put(tmp_path, "2403/2403.00001.html")
    (first,) = members_of(dump_settings(tmp_path))
    status = file.stat()
    file.write_bytes(PAGE.replace(b"loose", b"other"))
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert members_of(dump_settings(tmp_path)) == [first]
    for cached in (tmp_path / "data" / "cache" / "zips").glob("*.json"):
        cached.write_text("damaged")
    assert members_of(dump_settings(tmp_path)) != [first]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (PAGE + b"more", "corrupt_member"),
        (b"<html>other</html>", "corrupt_member"),
        (None, "unreadable"),
    ],
    ids=["longer", "other", "gone"],
)
def test_a_loose_page_that_changed_since_it_was_listed_is_refused(tmp_path, content, reason):
    file = put(tmp_path, "2403/2403.00001.html")
    (page,) = members_of(dump_settings(tmp_path))
    file.unlink()
    if content is not None:
        file.write_bytes(content)
    assert refusal(tmp_path, page) == reason


def test_a_loose_page_too_large_is_not_read(tmp_path):
    os.truncate(put(tmp_path, "2403/2403.00001.html"), LARGEST_PAGE + 1)
    (page,) = members_of(dump_settings(tmp_path))
    assert page.crc32 == 0
    assert refusal(tmp_path, page) == "too_large"


def test_a_range_that_the_system_reads_in_pieces_is_whole(tmp_path, monkeypatch):
    content = bytes(range(20))
    (tmp_path / "a.zip").write_bytes(content)
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda file, most, start: pread(file, min(most, 3), start))
    with closing(LocalFile(tmp_path / "a.zip")) as file:
        assert file.read(1, 7) == content[1:8]
        assert file.read(15, 9) == content[15:]


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


def test_where_nothing_can_be_written_the_listing_is_held_in_memory(tmp_path):
    (tmp_path / "cache").write_text("a file where the folder would be")
    listing = listing_in(tmp_path / "cache")
    assert rows_of(listing) == rows_of(listing_of(*NAMES))


def test_a_zip_without_a_name_that_is_a_file_has_no_parts(cache):
    assert listing_in(cache, ["error/", "error/2403/"]).parts == ()
    assert listing_in(cache).parts == ()
