"""The dump's zips: listing, months, subsets, strays, and zips that cannot be read."""

import os
from pathlib import Path

import pytest

from pipeline.corpus.dump.catalogue import broken_zips, months_in_dump, read_dump
from pipeline.corpus.dump.reader import MemberReader
from pipeline.errors import MissingInput, SettingError
from tests.cases import cases
from tests.unit.corpus.building import dump_settings, members_of, write_zip
from tests.unit.corpus.hostile_zips import GOOD


def strays_of(folder, subsets="no_problem,warning,error,unrated"):
    return list(read_dump(dump_settings(folder, subsets=subsets)).strays("2024-03"))


@cases(
    "unit/corpus/cases.toml",
    "the_subset_comes_from_folder_or_zip",
    ("zip_name", "member", "subset"),
)
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
    (tmp_path / "folder.zip").mkdir()
    assert months_in_dump(dump_settings(tmp_path)) == ["1998-02", "2024-03", "2024-04"]
    assert months_in_dump(dump_settings(tmp_path, subsets="warning")) == ["2024-04"]


@cases(
    "unit/corpus/cases.toml",
    "a_dump_without_a_page_is_a_wrong_setting",
    ("zip_name", "member", "why"),
)
def test_a_dump_without_a_page_is_a_wrong_setting(tmp_path, zip_name, member, why):
    write_zip(tmp_path / zip_name, {member: b"x"})
    with pytest.raises(
        SettingError, match=rf"no arXiv page is in .*{why}.*CITELOOM_SUBSETS is error"
    ):
        months_in_dump(dump_settings(tmp_path, subsets="error"))


def test_a_zip_that_changed_is_read_again(tmp_path):
    file = write_zip(tmp_path / "errors.zip", {"error/2403/2403.00001.html": b""})
    assert months_in_dump(dump_settings(tmp_path)) == ["2024-03"]
    write_zip(file, {"error/2404/2404.00001.html": b"", "error/2404/2404.00002.html": b""})
    assert months_in_dump(dump_settings(tmp_path)) == ["2024-04"]


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
    "no bytes": (Path.touch, "is no zip"),
    "no zip": (lambda file: file.write_bytes(b"not a zip at all" * 100), "is no zip"),
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


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file and list every folder")
def test_a_zip_or_folder_without_permission_is_named(tmp_path):
    write_zip(tmp_path / "errors.zip", GOOD).chmod(0)
    with pytest.raises(MissingInput, match=r"errors\.zip cannot be read \(Permission denied\)"):
        months_in_dump(dump_settings(tmp_path))
    (tmp_path / "dump").mkdir(mode=0)
    with pytest.raises(SettingError, match=r"dump cannot be listed \(Permission denied\)"):
        months_in_dump(dump_settings(tmp_path / "dump"))


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("warnings.zip", "warnings.zip is no zip, or is cut off"),
        ("\udcff-warnings.zip", "/?-warnings.zip: its name is not UTF-8: rename it"),
    ],
)
def test_a_broken_zip_leaves_the_pages_of_the_others_and_is_no_months(tmp_path, name, why):
    content = write_zip(tmp_path / "errors.zip", GOOD).read_bytes()
    (tmp_path / name).write_bytes(content[:-100])
    assert len(members_of(dump_settings(tmp_path))) == len(GOOD)
    (message,) = broken_zips(dump_settings(tmp_path))
    assert why in message
    assert strays_of(tmp_path) == []


def test_of_several_zips_that_are_all_broken_one_is_named_and_the_others_counted(tmp_path):
    for name in ("errors.zip", "no-problem.zip", "warnings.zip"):
        (tmp_path / name).write_bytes(b"no zip")
    with pytest.raises(
        MissingInput, match=r"errors\.zip is no zip.*\(2 more zips cannot be used either\)"
    ):
        months_in_dump(dump_settings(tmp_path))


def test_a_zip_that_is_gone_is_named(tmp_path):
    file = write_zip(tmp_path / "errors.zip", GOOD)
    (member, *_) = members_of(dump_settings(tmp_path))
    file.unlink()
    with (
        MemberReader(tmp_path) as reader,
        pytest.raises(MissingInput, match=r"errors\.zip cannot be opened"),
    ):
        reader.read(member)
