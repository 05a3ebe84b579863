"""Dumps on an object store: the same pages as from a disk, in few requests."""

import re
from typing import ClassVar

import pytest
from fsspec import register_implementation
from fsspec.core import url_to_fs
from fsspec.implementations.memory import MemoryFileSystem

from pipeline.corpus.dump.catalogue import months_in_dump, read_dump
from pipeline.corpus.dump.folder import LONGEST_SPAN, WIDEST_GAP, RemoteFile, RemoteFolder
from pipeline.corpus.dump.member import MemberError
from pipeline.corpus.dump.reader import MemberReader
from pipeline.errors import MissingInput, SettingError, TransientFailure
from tests.cases import cases
from tests.unit.corpus.building import dump_settings, members_of, write_zip

PAGES = {
    f"error/2403/2403.{number:05d}.html": f"<html>{number}</html>".encode() * 500
    for number in range(1, 41)
}


@pytest.fixture
def bucket(tmp_path):
    """The address of a store in memory that holds one zip."""
    address = f"memory://{tmp_path.name}/dump"
    put(address, "errors.zip", write_zip(tmp_path / "errors.zip", PAGES).read_bytes())
    yield address
    system, path = url_to_fs(address)
    system.rm(path, recursive=True)


def put(address, name, content):
    system, path = url_to_fs(address)
    system.pipe_file(f"{path}/{name}", content)


def test_a_dump_on_a_store_has_the_pages_of_the_same_on_a_disk(bucket, tmp_path):
    remote, local = (
        dump_settings(bucket, tmp_path / "data"),
        dump_settings(tmp_path, tmp_path / "data"),
    )
    assert members_of(remote) == members_of(local)
    assert read_dump(remote).digest("2024-03") == read_dump(local).digest("2024-03")
    with MemberReader(remote.dump_dir) as reader:
        assert {page.member: reader.read(page) for page in members_of(remote)} == PAGES


def test_an_address_of_files_is_a_folder_on_this_disk(tmp_path):
    write_zip(tmp_path / "errors.zip", PAGES)
    address = f"file://{tmp_path}"
    settings = dump_settings(address, tmp_path / "data")
    assert settings.dump_dir == tmp_path
    assert ("errors.zip", False) in RemoteFolder(address).names()
    with MemberReader(address) as reader:
        assert {page.member: reader.read(page) for page in members_of(settings)} == PAGES


class CountedRequests(MemoryFileSystem):
    """The store in memory, counting the ranges that are read."""

    protocol = "counted"
    cachable = False
    ranges: ClassVar[list[tuple[int, int]]] = []

    @classmethod
    def _strip_protocol(cls, path):
        return str(super()._strip_protocol(re.sub("^(counted|expired)://", "memory://", path)))

    def cat_file(self, path, start=None, end=None, **options):
        self.ranges.append((start or 0, end or 0))
        return bytes(super().cat_file(path, start, end, **options))


class ExpiredToken(CountedRequests):
    """A store whose library has errors of its own."""

    def cat_file(self, path, start=None, end=None, **options):
        raise RuntimeError("the token has expired")


register_implementation("counted", CountedRequests)
register_implementation("expired", ExpiredToken)


def through(protocol, bucket):
    """The address of the same bucket by another protocol."""
    CountedRequests.ranges.clear()
    return bucket.replace("memory", protocol)


@cases(
    "unit/corpus/cases.toml",
    "planned_neighbours_are_fetched_by_one_request_and",
    ["planned", "requests"],
)
def test_planned_neighbours_are_fetched_by_one_request_and_other_pages_by_one_each(
    bucket, tmp_path, planned, requests
):
    pages = members_of(dump_settings(bucket, tmp_path / "data"))
    with MemberReader(through("counted", bucket)) as reader:
        reader.plan(pages[:planned])
        assert {page.member: reader.read(page) for page in pages} == PAGES
    assert len(CountedRequests.ranges) == requests


def test_loose_pages_on_a_store_are_read(bucket, tmp_path):
    put(bucket, "2404/2404.00001.html", b"<html>loose</html>")
    put(bucket, "warning/2404/2404.00002.html", b"<html>loose too</html>")
    settings = dump_settings(bucket, tmp_path / "data")
    assert months_in_dump(settings) == ["2024-03", "2024-04"]
    with MemberReader(settings.dump_dir) as reader:
        assert [reader.read(page) for page in members_of(settings, "2024-04")] == [
            b"<html>loose</html>", b"<html>loose too</html>",
        ]  # fmt: skip


def test_a_zip_that_changed_is_seen_once_the_listing_is_old(bucket):
    folder = RemoteFolder(bucket, listing_seconds=0)
    before = folder.state("errors.zip")
    put(bucket, "errors.zip", b"another")
    assert folder.state("errors.zip") != before


@cases("unit/corpus/cases.toml", "an_address_that_nothing_here_reads_is_a", ["address", "told"])
def test_an_address_that_nothing_here_reads_is_a_wrong_setting(tmp_path, address, told):
    with pytest.raises(SettingError, match=rf"CITELOOM_DUMP_DIR.*{told}"):
        months_in_dump(dump_settings(address, tmp_path / "data"))


def test_an_error_of_the_stores_library_is_no_fault_of_the_page(bucket, tmp_path):
    (page, *_) = members_of(dump_settings(bucket, tmp_path / "data"))
    with (
        MemberReader(through("expired", bucket)) as reader,
        pytest.raises(TransientFailure, match=r"RuntimeError: the token has expired.*run again"),
    ):
        reader.read(page)


def test_what_is_gone_from_a_store_is_an_unreadable_page_or_a_missing_zip(bucket, tmp_path):
    put(bucket, "2404/2404.00001.html", b"<html>loose</html>")
    put(bucket, "2404/2404.00002.html", b"<html>loose</html>")
    settings = dump_settings(bucket, tmp_path / "data")
    (zipped, *_), (loose, _) = members_of(settings), members_of(settings, "2024-04")
    system, path = url_to_fs(bucket)
    for name in ("2404/2404.00001.html", "errors.zip"):
        system.rm(f"{path}/{name}")
    with MemberReader(bucket) as reader:
        with pytest.raises(MemberError) as caught:
            reader.read(loose)
        with pytest.raises(MissingInput, match=r"errors\.zip cannot be opened"):
            reader.read(zipped)
    assert caught.value.reason == "unreadable"


@pytest.mark.parametrize(
    ("planned", "spans"),
    [
        ([(0, 10), (10 + WIDEST_GAP, 20 + WIDEST_GAP)], [(0, 20 + WIDEST_GAP)]),
        ([(0, 10), (11 + WIDEST_GAP, 99 + WIDEST_GAP)], None),
        ([(0, LONGEST_SPAN), (LONGEST_SPAN, LONGEST_SPAN + 5)], None),
        ([(0, 2 * LONGEST_SPAN)], None),
    ],
)
def test_neighbours_are_fetched_together_over_small_gaps_up_to_a_length(planned, spans):
    fetched = []

    def fetch(start, end):
        fetched.append((start, end))
        return bytes(end - start)

    file = RemoteFile(4 * LONGEST_SPAN, fetch)
    file.plan(planned)
    for start, end in planned:
        assert len(file.read(start, end - start)) == end - start
    assert fetched == (spans or planned)
    assert file.read(4 * LONGEST_SPAN, 1) == b""
    assert file.read(4 * LONGEST_SPAN - 1, 5) == bytes(1)
