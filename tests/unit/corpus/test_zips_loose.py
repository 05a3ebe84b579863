"""Loose pages beside the zips, or instead of them."""

from __future__ import annotations

import os
import zlib
from pathlib import Path

import pytest

from pipeline.corpus.dump.catalogue import months_in_dump, read_dump
from pipeline.corpus.dump.member import LARGEST_PAGE, Member, MemberError
from pipeline.corpus.dump.reader import MemberReader
from pipeline.errors import SettingError
from pipeline.settings import Settings, load_settings
from tests.unit.corpus.building import write_zip

PAGE = b"<html>loose</html>"


def settings_for(folder: Path, **overrides: str) -> Settings:
    return load_settings(dump_dir=folder, data=folder.parent / "data", **overrides)


def put(folder: Path, path: str, content: bytes = PAGE) -> Path:
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return file


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    (tmp_path / "dump").mkdir()
    return tmp_path / "dump"


def pages_of(folder: Path, month: str, **overrides: str) -> list[Member]:
    return [Member(**row) for row in read_dump(settings_for(folder, **overrides)).pages(month).to_pylist()]


def test_loose_pages_need_no_zip(dump: Path) -> None:
    put(dump, "2504/2504.00001.html")
    put(dump, "errors/2505/2505.00002v3.html")
    put(dump, "9802/quant-ph9802040.html")
    assert months_in_dump(settings_for(dump)) == ["1998-02", "2025-04", "2025-05"]
    (page,) = pages_of(dump, "2025-04")
    assert page == Member(
        "2504.00001", "unrated", "", "2504/2504.00001.html", 0, len(PAGE), len(PAGE), zlib.crc32(PAGE)
    )
    (rated,) = pages_of(dump, "2025-05")
    assert (rated.arxiv_id, rated.subset, rated.member) == ("2505.00002", "error", "errors/2505/2505.00002v3.html")
    with MemberReader(dump) as reader:
        assert reader.read(page) == reader.read(rated) == PAGE


def test_a_loose_page_goes_before_those_in_zips(dump: Path) -> None:
    write_zip(dump / "no-problem.zip", {"no_problem/2403/2403.00001.html": b"<html>older</html>"})
    put(dump, "error/2403/2403.00001.html")
    assert [(page.zip, page.subset) for page in pages_of(dump, "2024-03")] == [
        ("", "error"),
        ("no-problem.zip", "no_problem"),
    ]


def test_loose_pages_are_those_of_the_chosen_subsets(dump: Path) -> None:
    put(dump, "2403/2403.00001.html")
    put(dump, "warning/2403/2403.00002.html")
    put(dump, "warning/2404/2404.00002.html")
    assert [page.arxiv_id for page in pages_of(dump, "2024-03", subsets="unrated")] == ["2403.00001"]
    assert months_in_dump(settings_for(dump, subsets="unrated")) == ["2024-03"]


def test_a_name_in_a_loose_folder_that_is_no_page_is_a_stray(dump: Path) -> None:
    put(dump, "2403/2403.00001.html")
    put(dump, "2403/2404.00001.html")
    put(dump, "2403/notes.txt")
    put(dump, "2403/images/x1.png")
    (dump / "2403" / "2403.00009.html").symlink_to(dump / "gone.html")
    strays = {one.place: one.reason for one in read_dump(settings_for(dump)).strays("2024-03")}
    assert strays == {
        "2403/2404.00001.html": "not_an_arxiv_page",
        "2403/notes.txt": "not_an_arxiv_page",
        "2403/images": "not_an_arxiv_page",
        "2403/2403.00009.html": "unreadable",
    }


def test_a_name_that_is_not_unicode_is_a_stray_and_the_others_are_read(dump: Path) -> None:
    put(dump, "2403/2403.00001.html")
    put(dump, "2403/2403.0000\udcff.html")
    assert [page.arxiv_id for page in pages_of(dump, "2024-03")] == ["2403.00001"]
    strays = {one.place: one.reason for one in read_dump(settings_for(dump)).strays("2024-03")}
    assert strays == {"2403/2403.0000?.html": "not_an_arxiv_page"}


def test_folders_of_other_names_are_none_of_the_dump(dump: Path) -> None:
    put(dump, "2403/2403.00001.html")
    put(dump, "2413/2413.00001.html")
    put(dump, "drafts/2404/2404.00001.html")
    put(dump, ".trash/2405/2405.00001.html")
    (dump / "2406").mkdir()
    assert months_in_dump(settings_for(dump)) == ["2024-03"]


def test_a_folder_without_a_page_is_named(dump: Path) -> None:
    put(dump, "2403/notes.txt")
    with pytest.raises(SettingError, match=r"no \.zip file is in .*, nor any page in a folder <yymm>"):
        months_in_dump(settings_for(dump))


def test_a_page_that_came_later_is_seen(dump: Path) -> None:
    put(dump, "2403/2403.00001.html")
    assert len(pages_of(dump, "2024-03")) == 1
    put(dump, "2403/2403.00002.html")
    put(dump, "2404/2404.00001.html")
    assert len(pages_of(dump, "2024-03")) == 2
    assert months_in_dump(settings_for(dump)) == ["2024-03", "2024-04"]


def test_a_page_that_changed_changes_the_digest_and_one_that_was_touched_does_not(dump: Path) -> None:
    file = put(dump, "2403/2403.00001.html")
    before = read_dump(settings_for(dump)).digest("2024-03")
    os.utime(file, (1, 1))
    assert read_dump(settings_for(dump)).digest("2024-03") == before
    file.write_bytes(PAGE.replace(b"loose", b"other"))
    assert read_dump(settings_for(dump)).digest("2024-03") != before


def test_a_page_is_read_for_its_checksum_once(dump: Path, tmp_path: Path) -> None:
    """The second time its bytes are others behind the same size and time, and the checksum is still the first."""
    file = put(dump, "2403/2403.00001.html")
    (first,) = pages_of(dump, "2024-03")
    status = file.stat()
    file.write_bytes(PAGE.replace(b"loose", b"other"))
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert pages_of(dump, "2024-03") == [first]
    for kept in (tmp_path / "data" / "cache" / "zips").glob("*.json"):
        kept.write_text("damaged")
    assert pages_of(dump, "2024-03") != [first]


@pytest.mark.parametrize("content", [PAGE + b"more", b"<html>other</html>", b""], ids=["longer", "other", "empty"])
def test_a_loose_page_that_changed_since_it_was_listed_is_refused(dump: Path, content: bytes) -> None:
    file = put(dump, "2403/2403.00001.html")
    (page,) = pages_of(dump, "2024-03")
    file.write_bytes(content)
    with MemberReader(dump) as reader, pytest.raises(MemberError) as caught:
        reader.read(page)
    assert caught.value.reason == "corrupt_member"


def test_a_loose_page_that_is_gone_is_unreadable(dump: Path) -> None:
    file = put(dump, "2403/2403.00001.html")
    (page,) = pages_of(dump, "2024-03")
    file.unlink()
    with MemberReader(dump) as reader, pytest.raises(MemberError, match="No such file") as caught:
        reader.read(page)
    assert caught.value.reason == "unreadable"


def test_a_loose_page_too_large_is_not_read(dump: Path) -> None:
    file = put(dump, "2403/2403.00001.html")
    os.truncate(file, LARGEST_PAGE + 1)
    (page,) = pages_of(dump, "2024-03")
    assert page.crc32 == 0
    with MemberReader(dump) as reader, pytest.raises(MemberError) as caught:
        reader.read(page)
    assert caught.value.reason == "too_large"


def test_an_empty_loose_page_is_read(dump: Path) -> None:
    put(dump, "2403/2403.00001.html", b"")
    (page,) = pages_of(dump, "2024-03")
    with MemberReader(dump) as reader:
        assert reader.read(page) == b""
