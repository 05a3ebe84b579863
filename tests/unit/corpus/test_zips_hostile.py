"""Zips that lie, break or have bytes changed at random: every name is read or told, nobody else's page
is lost, and nothing else is ever raised.
"""

import io
import struct
import sys
import zipfile
import zlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.corpus.dump.catalogue import broken_zips, read_dump
from pipeline.corpus.dump.central_directory import read_directory
from pipeline.corpus.dump.listing import list_zip
from pipeline.corpus.dump.member import Member, MemberError
from pipeline.corpus.dump.reader import MemberReader
from pipeline.errors import MissingInput
from tests.processes import in_new_process
from tests.unit.corpus.building import dump_settings, members_of, write_zip
from tests.unit.corpus.hostile_zips import FIRST, GOOD, HOSTILE

pytestmark = pytest.mark.slow

OTHER = "warning/2403/2403.10000.html"


def read_all(settings):
    """(pages that were read, reasons of those that were not), by name; duplicates as they come."""
    dump, read, lost = read_dump(settings), {}, {}
    for month in dump.months:
        lost |= {place.partition(":")[2]: reason for place, reason, _ in dump.strays(month)}
        with MemberReader(settings.dump_dir) as reader:
            for row in reversed(dump.pages(month).to_pylist()):
                try:
                    read[row["member"]] = reader.read(Member(**row))
                except MemberError as error:
                    lost[row["member"]] = error.reason
    return read, lost


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_zip_loses_its_own_pages_alone_and_each_is_told(tmp_path, name):
    hostile = HOSTILE[name]
    write_zip(tmp_path / "warnings.zip", {OTHER: b"<html>unharmed</html>"})
    hostile.write(tmp_path / "errors.zip")
    read, lost = read_all(dump_settings(tmp_path))
    assert read.pop(OTHER) == b"<html>unharmed</html>"
    assert set(read) == set(hostile.read)
    assert all(read[other] == GOOD[other] for other in read.keys() & GOOD.keys() - {FIRST})
    told = broken_zips(dump_settings(tmp_path))
    assert [hostile.broken in message and "errors.zip" in message for message in told] == [
        True
    ] * bool(hostile.broken)
    lost.pop("", None)  # the zip itself, where it is broken
    assert lost == dict(hostile.lost)


def test_of_one_name_twice_the_last_is_kept(tmp_path):
    HOSTILE["one name twice"].write(tmp_path / "errors.zip")
    last, first, *_ = members_of(dump_settings(tmp_path))
    with MemberReader(tmp_path) as reader:
        assert reader.read(last) == b"<html>newer</html>"
    assert first.arxiv_id == last.arxiv_id


@pytest.mark.faults
@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells how much memory a process took")
def test_no_hostile_zip_takes_400_mb(tmp_path):
    """One after another in a process that did nothing else."""
    for number, hostile in enumerate(HOSTILE.values()):
        (tmp_path / str(number)).mkdir()
        write_zip(tmp_path / str(number) / "warnings.zip", {OTHER: b"<html>unharmed</html>"})
        hostile.write(tmp_path / str(number) / "errors.zip")
    pages, megabytes = in_new_process(count_pages, tmp_path)
    assert pages == sum(len(hostile.read) + 1 for hostile in HOSTILE.values())
    assert megabytes < 400


def count_pages(folder):
    """How many pages can be read of the dumps in a folder."""
    return sum(len(read_all(dump_settings(dump))[0]) for dump in folder.iterdir())


def test_a_directory_of_more_entries_than_its_count_can_say_is_read(tmp_path):
    """Old tools write a zip of 65,536 entries or more without zip64, and their count wraps
    round.
    """
    file = write_zip(
        tmp_path / "errors.zip",
        {f"error/2403/2403.{number:05d}.html": b"" for number in range(65_540)},
    )
    content = bytearray(file.read_bytes())
    locator, end = content.rindex(b"PK\6\7"), content.rindex(b"PK\5\6")
    length, start = struct.unpack_from("<2Q", content, content.rindex(b"PK\6\6") + 40)
    content[end:] = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 4, 4, length, start, 0)
    del content[locator - 56 : end]
    file.write_bytes(content)
    assert len(members_of(dump_settings(tmp_path))) == 65_540


NAMES = (
    "error/2403/2403.00001.html",
    "error/9802/quant-ph9802040.html",
    "error/2404/x.html",
    "2404/2404.00001v2.html",
)


def small_zip(*, zip64):
    """A zip of a few pages, some stored, some packed."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for number, name in enumerate(NAMES):
            info = zipfile.ZipInfo(name)
            info.compress_type = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)[number % 2]
            with archive.open(info, "w", force_zip64=zip64) as stream:
                stream.write(f"<html>{number}</html>".encode() * 50)
    return file.getvalue()


ZIPS = (small_zip(zip64=False), small_zip(zip64=True))
REASONS = {"corrupt_member", "encrypted", "unsupported_compression", "unreadable", "too_large"}
CHANGES = st.lists(
    st.tuples(st.integers(0, 1 << 30), st.binary(min_size=1, max_size=8)), min_size=1, max_size=4
)


def mutate(content, changes, cut):
    changed = bytearray(content)
    for place, new in changes:
        at = place % len(changed)
        changed[at : at + len(new)] = new
    return bytes(changed[: len(changed) - cut])


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(zipped=st.sampled_from(ZIPS), changes=CHANGES, cut=st.sampled_from([0, 0, 0, 0, 1, 40]))
def test_a_mutated_zip_raises_nothing_that_the_ledger_does_not_know(tmp_path, zipped, changes, cut):
    content = mutate(zipped, changes, cut)
    (tmp_path / "errors.zip").write_bytes(content)
    try:
        listing = listing_of(content)
    except MissingInput:
        return
    with MemberReader(tmp_path) as reader:
        for part in listing.parts:
            for row in listing.rows_of(part).drop_columns(["reason", "detail"]).to_pylist():
                if part.strays:
                    assert row["arxiv_id"] is None
                    continue
                member = Member(subset=part.subset, zip="errors.zip", **row)
                page, reason = read_or_reason(reader, member)
                assert zlib.crc32(page) == member.crc32 if page is not None else reason in REASONS


def listing_of(content):
    def read(start, length):
        return content[start : start + length]

    return list_zip(read_directory("errors.zip", len(content), read), "errors.zip")


def read_or_reason(reader, member):
    try:
        return reader.read(member), ""
    except MemberError as error:
        return None, error.reason
