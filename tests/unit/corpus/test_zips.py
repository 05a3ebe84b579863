"""The dump's zips: listing, months, reading members in place, and zips that are broken."""

from __future__ import annotations

import os
import struct
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.corpus.dump.catalogue import Stray, broken_zips, months_in_dump, read_dump
from pipeline.corpus.dump.member import LARGEST_PAGE, Member, MemberError
from pipeline.corpus.dump.reader import MemberReader
from pipeline.errors import MissingInput, SettingError
from pipeline.settings import Settings, load_settings
from tests.unit.corpus.building import overwrite_zip64_field, write_zip

PAGES = {f"error/2403/2403.0000{number}.html": f"<html>{number}</html>".encode() * 500 for number in range(1, 6)}


def settings_for(folder: Path, subsets: str = "no_problem,warning,error,unrated") -> Settings:
    return load_settings(dump_dir=folder, data=folder / "data", subsets=subsets)


def members_of(folder: Path, month: str) -> list[Member]:
    return [Member(**row) for row in read_dump(settings_for(folder)).pages(month).to_pylist()]


def strays_of(folder: Path, month: str, subsets: str = "no_problem,warning,error,unrated") -> list[Stray]:
    return list(read_dump(settings_for(folder, subsets)).strays(month))


def test_members_are_read_in_place(tmp_path: Path) -> None:
    write_zip(tmp_path / "ar5iv-04-2024-errors.zip", PAGES)
    found = members_of(tmp_path, "2024-03")
    with MemberReader(tmp_path) as reader:
        assert {member.member: reader.read(member) for member in found} == PAGES


def test_a_stored_member_is_read_too(tmp_path: Path) -> None:
    write_zip(tmp_path / "errors.zip", PAGES, zipfile.ZIP_STORED)
    (first, *_) = members_of(tmp_path, "2024-03")
    with MemberReader(tmp_path) as reader:
        assert reader.read(first) == PAGES[first.member]


def test_what_the_directory_says_is_what_zipfile_says(tmp_path: Path) -> None:
    file = write_zip(tmp_path / "errors.zip", PAGES)
    with zipfile.ZipFile(file) as archive:
        expected = [
            (info.filename, info.header_offset, info.file_size, info.compress_size, info.CRC)
            for info in archive.infolist()
        ]
    found = members_of(tmp_path, "2024-03")
    assert [(m.member, m.offset, m.bytes, m.compressed_bytes, m.crc32) for m in found] == expected


def test_bytes_before_the_zip_do_not_matter(tmp_path: Path) -> None:
    file = write_zip(tmp_path / "errors.zip", PAGES)
    file.write_bytes(b"#!/bin/sh\n" * 10 + file.read_bytes())
    (first, *_) = members_of(tmp_path, "2024-03")
    with MemberReader(tmp_path) as reader:
        assert reader.read(first) == PAGES[first.member]


def test_zip64_fields_are_read(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "errors.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in PAGES.items():
            with archive.open(name, "w", force_zip64=True) as stream:
                stream.write(content)
    (first, *_) = members_of(tmp_path, "2024-03")
    with MemberReader(tmp_path) as reader:
        assert reader.read(first) == PAGES[first.member]


def test_a_directory_in_zip64_form_is_read(tmp_path: Path) -> None:
    write_zip64(tmp_path / "errors.zip")
    (only,) = members_of(tmp_path, "2024-03")
    with MemberReader(tmp_path) as reader:
        assert reader.read(only) == b"<html>1</html>"


def write_zip64(file: Path, record_at: int | None = None, signature: bytes = b"PK\6\6") -> Path:
    """As a zip above 4 GB is written: every plain field full, the true ones in zip64 records."""
    content = write_zip(file, {"error/2403/2403.00001.html": b"<html>1</html>"}).read_bytes()
    end = content.rindex(b"PK\5\6")
    _, start = struct.unpack_from("<2L", content, end + 12)
    entry = bytearray(content[start:end])
    compressed, size = struct.unpack_from("<2L", entry, 20)
    offset = struct.unpack_from("<L", entry, 42)[0]
    extra = struct.pack("<2H3Q", 1, 24, size, compressed, offset)
    struct.pack_into("<2L", entry, 20, 0xFFFFFFFF, 0xFFFFFFFF)
    struct.pack_into("<H", entry, 30, len(extra))
    struct.pack_into("<L", entry, 42, 0xFFFFFFFF)
    directory = bytes(entry) + extra
    record = struct.pack("<4sQ2H2L4Q", signature, 44, 45, 45, 0, 0, 1, 1, len(directory), start)
    at = start + len(directory) if record_at is None else record_at
    locator = struct.pack("<4sLQL", b"PK\6\7", 0, at, 1)
    closing = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    file.write_bytes(content[:start] + directory + record + locator + closing)
    return file


@pytest.mark.parametrize("at", [10**6, 2**63, 2**64 - 1])
def test_a_zip64_record_outside_of_the_file_is_named(tmp_path: Path, at: int) -> None:
    write_zip64(tmp_path / "errors.zip", record_at=at, signature=b"PKxx")
    with pytest.raises(MissingInput, match=r"errors\.zip is broken: its zip64 record is not where it says"):
        months_in_dump(settings_for(tmp_path))


def test_bytes_before_a_zip64_do_not_matter(tmp_path: Path) -> None:
    file = write_zip64(tmp_path / "errors.zip")
    file.write_bytes(b"#!/bin/sh\n" * 10 + file.read_bytes())
    (only,) = members_of(tmp_path, "2024-03")
    with MemberReader(tmp_path) as reader:
        assert reader.read(only) == b"<html>1</html>"


@pytest.mark.parametrize(
    "extra",
    [
        struct.pack("<2HQ", 1, 8, 2**64 - 1),
        struct.pack("<2HQ", 1, 0xFFF0, 0),
        struct.pack("<2HL", 1, 4, 0),
        struct.pack("<2HQ", 9, 8, 0),
        b"",
    ],
    ids=["past any file", "longer than its room", "too short", "another field", "none"],
)
def test_an_entry_whose_zip64_field_lies_is_a_stray_and_the_others_stay(tmp_path: Path, extra: bytes) -> None:
    overwrite_zip64_field(write_zip(tmp_path / "errors.zip", PAGES), "error/2403/2403.00003.html", extra)
    assert [member.arxiv_id[-1] for member in members_of(tmp_path, "2024-03")] == ["1", "2", "4", "5"]
    assert [(stray.place, stray.reason) for stray in strays_of(tmp_path, "2024-03")] == [
        ("errors.zip:error/2403/2403.00003.html", "corrupt_member")
    ]


@pytest.mark.parametrize(
    ("zip_name", "member", "subset"),
    [
        ("ar5iv-04-2024-no-problem.zip", "2403/2403.00001.html", "no_problem"),
        ("ar5iv-04-2024-warnings.zip", "2403/2403.00001.html", "warning"),
        ("ar5iv-04-2024-errors.zip", "2403/2403.00001.html", "error"),
        ("part1.zip", "no_problem/2403/2403.00001.html", "no_problem"),
        ("part1.zip", "warnings/2403/2403.00001.html", "warning"),
        ("ar5iv-04-2024-errors.zip", "warning/2403/2403.00001.html", "warning"),
        ("part1.zip", "2403/2403.00001.html", "unrated"),
    ],
)
def test_the_subset_comes_from_folder_or_zip(tmp_path: Path, zip_name: str, member: str, subset: str) -> None:
    write_zip(tmp_path / zip_name, {member: b"<html>"})
    assert [found.subset for found in members_of(tmp_path, "2024-03")] == [subset]


def test_months_are_those_of_the_chosen_subsets(tmp_path: Path) -> None:
    write_zip(tmp_path / "errors.zip", {"error/2403/2403.00001.html": b"", "error/9802/quant-ph9802040.html": b""})
    write_zip(tmp_path / "warnings.zip", {"warning/2404/2404.00001.html": b"", "warning/": b"", "notes.txt": b""})
    assert months_in_dump(settings_for(tmp_path)) == ["1998-02", "2024-03", "2024-04"]
    assert months_in_dump(settings_for(tmp_path, "warning")) == ["2024-04"]


@pytest.mark.parametrize(
    ("zip_name", "member", "why"),
    [
        ("errors.zip", "readme.txt", r"for example errors\.zip:readme\.txt \(it is not"),
        ("part1.zip", "2403/2403.00001.html", "1 pages of subsets that are not chosen"),
        ("errors.zip", "error/2403.00001.html", "a page is <subset>/<yymm>/<id>"),
        ("warnings.zip", "warning/", "0 names that are no page"),
        ("warnings.zip", "2403/2403.00001.html", "1 pages of subsets that are not chosen"),
    ],
)
def test_a_dump_without_a_page_is_a_wrong_setting(tmp_path: Path, zip_name: str, member: str, why: str) -> None:
    write_zip(tmp_path / zip_name, {member: b"x"})
    with pytest.raises(SettingError, match=rf"no arXiv page is in .*{why}.*CITELOOM_SUBSETS is error"):
        months_in_dump(settings_for(tmp_path, "error"))


def test_a_zip_that_changed_is_read_again(tmp_path: Path) -> None:
    file = write_zip(tmp_path / "errors.zip", {"error/2403/2403.00001.html": b""})
    assert months_in_dump(settings_for(tmp_path)) == ["2024-03"]
    write_zip(file, {"error/2404/2404.00001.html": b"", "error/2404/2404.00002.html": b""})
    assert months_in_dump(settings_for(tmp_path)) == ["2024-04"]


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"CITELOOM_DUMP_DIR.*nowhere"):
        months_in_dump(settings_for(tmp_path / "nowhere"))


def test_a_folder_without_zips_is_named(tmp_path: Path) -> None:
    (tmp_path / "2403.html").write_text("x")
    with pytest.raises(SettingError, match=r"no \.zip file is in .*, nor any page in a folder <yymm>"):
        months_in_dump(settings_for(tmp_path))


def test_a_folder_named_like_a_zip_is_no_zip(tmp_path: Path) -> None:
    (tmp_path / "warnings.zip").mkdir()
    write_zip(tmp_path / "errors.zip", PAGES)
    assert months_in_dump(settings_for(tmp_path)) == ["2024-03"]


def test_a_link_to_a_zip_that_is_gone_is_named(tmp_path: Path) -> None:
    (tmp_path / "errors.zip").symlink_to(tmp_path / "gone.zip")
    with pytest.raises(MissingInput, match=r"errors\.zip cannot be read \(No such file.*move it out of"):
        months_in_dump(settings_for(tmp_path))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_zip_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    write_zip(tmp_path / "errors.zip", PAGES).chmod(0)
    with pytest.raises(MissingInput, match=r"errors\.zip cannot be read \(Permission denied\)"):
        months_in_dump(settings_for(tmp_path))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may list every folder")
def test_a_folder_that_may_not_be_listed_is_named(tmp_path: Path) -> None:
    (tmp_path / "dump").mkdir(mode=0)
    with pytest.raises(SettingError, match=r"dump cannot be listed \(Permission denied\)"):
        months_in_dump(settings_for(tmp_path / "dump"))


def test_a_pipe_named_like_a_zip_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "errors.zip")
    with pytest.raises(MissingInput, match=r"errors\.zip cannot be read \(it is no regular file\)"):
        months_in_dump(settings_for(tmp_path))


@pytest.mark.parametrize("content", [b"", b"not a zip at all" * 100])
def test_a_file_that_is_no_zip_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "errors.zip").write_bytes(content)
    with pytest.raises(MissingInput, match=r"errors\.zip is no zip"):
        months_in_dump(settings_for(tmp_path))


def test_a_broken_zip_leaves_the_pages_of_the_others(tmp_path: Path) -> None:
    write_zip(tmp_path / "errors.zip", PAGES)
    (tmp_path / "warnings.zip").write_bytes((tmp_path / "errors.zip").read_bytes()[:-100])
    assert len(members_of(tmp_path, "2024-03")) == len(PAGES)
    (told,) = broken_zips(settings_for(tmp_path))
    assert "warnings.zip is no zip, or is cut off" in told
    assert strays_of(tmp_path, "2024-03") == [Stray("warnings.zip", "unreadable_zip", told)]


def test_a_zip_whose_name_is_no_unicode_leaves_the_pages_of_the_others(tmp_path: Path) -> None:
    write_zip(tmp_path / "errors.zip", PAGES)
    write_zip(tmp_path / "\udcff-warnings.zip", PAGES)
    assert len(members_of(tmp_path, "2024-03")) == len(PAGES)
    (told,) = broken_zips(settings_for(tmp_path))
    assert told.endswith("/?-warnings.zip: its name is not UTF-8: rename it")
    assert strays_of(tmp_path, "2024-03") == [Stray("?-warnings.zip", "unreadable_zip", told)]


def test_of_several_zips_that_are_all_broken_one_is_named_and_the_others_counted(tmp_path: Path) -> None:
    for name in ("errors.zip", "no-problem.zip", "warnings.zip"):
        (tmp_path / name).write_bytes(b"no zip")
    with pytest.raises(MissingInput, match=r"errors\.zip is no zip.*\(2 more zips cannot be used either\)"):
        months_in_dump(settings_for(tmp_path))


def test_a_stray_of_a_subset_that_is_not_chosen_is_not_reported(tmp_path: Path) -> None:
    write_zip(tmp_path / "errors.zip", {**PAGES, "error/2403/notes.txt": b""})
    write_zip(tmp_path / "warnings.zip", {"warning/2403/2403.00009.html": b"", "warning/2403/x.txt": b"", "y.txt": b""})
    assert [one.place for one in strays_of(tmp_path, "2024-03", "error")] == ["errors.zip:error/2403/notes.txt"]
    assert len(strays_of(tmp_path, "2024-03")) == 3


def test_an_empty_zip_is_named(tmp_path: Path) -> None:
    write_zip(tmp_path / "errors.zip", {})
    with pytest.raises(MissingInput, match=r"errors\.zip is an empty zip"):
        months_in_dump(settings_for(tmp_path))


def test_a_zip_cut_off_is_named(tmp_path: Path) -> None:
    file = write_zip(tmp_path / "errors.zip", PAGES)
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(MissingInput, match=r"errors\.zip"):
        months_in_dump(settings_for(tmp_path))


def test_a_directory_overwritten_with_rubbish_is_named(tmp_path: Path) -> None:
    file = write_zip(tmp_path / "errors.zip", PAGES)
    content = bytearray(file.read_bytes())
    start = content.index(b"PK\1\2")
    content[start : start + 4] = b"xxxx"
    file.write_bytes(content)
    with pytest.raises(MissingInput, match="its directory ends early"):
        months_in_dump(settings_for(tmp_path))


def first_member(folder: Path) -> Member:
    write_zip(folder / "errors.zip", PAGES)
    return members_of(folder, "2024-03")[0]


def test_an_encrypted_member_is_refused(tmp_path: Path) -> None:
    member = first_member(tmp_path)
    content = bytearray((tmp_path / "errors.zip").read_bytes())
    content[member.offset + 6] |= 1
    (tmp_path / "errors.zip").write_bytes(content)
    assert_refused(tmp_path, member, "encrypted")


def test_another_compression_is_refused(tmp_path: Path) -> None:
    write_zip(tmp_path / "errors.zip", PAGES, zipfile.ZIP_LZMA)
    assert_refused(tmp_path, members_of(tmp_path, "2024-03")[0], "unsupported_compression")


def test_a_page_too_large_is_refused_before_it_is_read(tmp_path: Path) -> None:
    assert_refused(tmp_path, replace(first_member(tmp_path), bytes=LARGEST_PAGE + 1), "too_large")


def test_a_page_that_unpacks_to_more_than_it_says_is_refused(tmp_path: Path) -> None:
    assert_refused(tmp_path, replace(first_member(tmp_path), bytes=10), "corrupt_member")


def test_a_wrong_checksum_is_refused(tmp_path: Path) -> None:
    assert_refused(tmp_path, replace(first_member(tmp_path), crc32=1), "corrupt_member")


def test_overwritten_bytes_are_refused(tmp_path: Path) -> None:
    member = first_member(tmp_path)
    content = bytearray((tmp_path / "errors.zip").read_bytes())
    content[member.offset + 60 : member.offset + 80] = b"\xff" * 20
    (tmp_path / "errors.zip").write_bytes(content)
    assert_refused(tmp_path, member, "corrupt_member")


def test_an_offset_that_leads_nowhere_is_refused(tmp_path: Path) -> None:
    assert_refused(tmp_path, replace(first_member(tmp_path), offset=10_000_000), "corrupt_member")


def test_a_zip_that_is_gone_is_named(tmp_path: Path) -> None:
    member = first_member(tmp_path)
    (tmp_path / "errors.zip").unlink()
    with MemberReader(tmp_path) as reader, pytest.raises(MissingInput, match=r"errors\.zip cannot be opened"):
        reader.read(member)


def assert_refused(folder: Path, member: Member, reason: str) -> None:
    with MemberReader(folder) as reader, pytest.raises(MemberError) as caught:
        reader.read(member)
    assert caught.value.reason == reason
