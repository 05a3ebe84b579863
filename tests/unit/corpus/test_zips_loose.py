"""Loose pages beside the zips, or instead of them."""

import os
import zlib

import pytest

from pipeline.corpus.dump.catalogue import months_in_dump, read_dump
from pipeline.corpus.dump.member import LARGEST_PAGE, Member, MemberError
from pipeline.corpus.dump.reader import MemberReader
from tests.unit.corpus.building import dump_settings, members_of, write_zip

PAGE = b"<html>loose</html>"


def put(folder, path, content=PAGE):
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return file


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
    assert (rated.arxiv_id, rated.subset, rated.member) == (
        "2505.00002",
        "error",
        "errors/2505/2505.00002v3.html",
    )
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


def test_loose_pages_are_those_of_the_chosen_subsets(tmp_path):
    put(tmp_path, "2403/2403.00001.html")
    put(tmp_path, "warning/2403/2403.00002.html")
    put(tmp_path, "warning/2404/2404.00002.html")
    settings = dump_settings(tmp_path, subsets="unrated")
    assert [page.arxiv_id for page in members_of(settings)] == ["2403.00001"]
    assert months_in_dump(settings) == ["2024-03"]


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


def test_a_page_that_changed_changes_the_digest_and_one_that_was_touched_does_not(tmp_path):
    file = put(tmp_path, "2403/2403.00001.html")
    before = read_dump(dump_settings(tmp_path)).digest("2024-03")
    os.utime(file, (1, 1))
    assert read_dump(dump_settings(tmp_path)).digest("2024-03") == before
    file.write_bytes(PAGE.replace(b"loose", b"other"))
    assert read_dump(dump_settings(tmp_path)).digest("2024-03") != before


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
    with MemberReader(tmp_path) as reader, pytest.raises(MemberError) as caught:
        reader.read(page)
    assert caught.value.reason == reason


def test_a_loose_page_too_large_is_not_read(tmp_path):
    os.truncate(put(tmp_path, "2403/2403.00001.html"), LARGEST_PAGE + 1)
    (page,) = members_of(dump_settings(tmp_path))
    assert page.crc32 == 0
    with MemberReader(tmp_path) as reader, pytest.raises(MemberError) as caught:
        reader.read(page)
    assert caught.value.reason == "too_large"
