"""Zips with bytes changed at random: pages are read as they were, or told of; and nothing else is
ever raised.
"""

import io
import zipfile
import zlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.corpus.dump.catalogue import months_in_dump
from pipeline.corpus.dump.central_directory import read_directory
from pipeline.corpus.dump.listing import list_zip
from pipeline.corpus.dump.member import Member, MemberError
from pipeline.corpus.dump.reader import MemberReader
from pipeline.errors import MissingInput
from pipeline.identity.identifiers import MemberName, read_member_name
from tests.unit.corpus.building import dump_settings, members_of

pytestmark = pytest.mark.slow

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


NAME_PARTS = st.sampled_from(
    [
        "error/",
        "2403/",
        "0703/",
        "0704/",
        "1412/",
        "1501/",
        "9107/",
        "2413/",
        "2403.00001",
        "2403.0001",
        "1412.0001",
        "1412.00011",
        "0704.0001",
        "2404.00001",
        "cs0703001",
        "math.GT0703001",
        "quant-ph9802040",
        ".html",
        ".htm",
        ".xhtml",
        "v2",
        "..",
        "/",
        "x",
        "\u0662",
        "1501.00001",
        "0703.0001",
        "2403.0000\u0661",
    ]
)


@settings(max_examples=250, deadline=None)
@given(st.lists(st.lists(NAME_PARTS, max_size=5).map("".join), min_size=1, max_size=30))
def test_a_listing_says_of_every_name_what_reading_it_alone_says(names):
    names += [f"error/2403/2403.{number:05}.html" for number in range(3)]
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in dict.fromkeys(names):
            archive.writestr(zipfile.ZipInfo(name), b"")
    listing = listing_of(file.getvalue())
    found = {
        row["member"]: (row["arxiv_id"], part.month)
        for part in listing.parts
        if not part.strays
        for row in listing.rows_of(part).to_pylist()
    }
    said = {
        name: read_member_name(name)
        for name in names
        if ".." not in name.split("/") and not name.startswith("/")
    }
    assert found == {
        name: (one.arxiv_id, one.month) for name, one in said.items() if isinstance(one, MemberName)
    }


def test_real_pages_are_those_that_zipfile_reads(shared_data, tmp_path):
    settings = dump_settings(shared_data / "dump", tmp_path)
    members = [page for month in months_in_dump(settings) for page in members_of(settings, month)]
    assert len(members) == 21
    with MemberReader(settings.dump_dir) as reader:
        for member in members:
            with zipfile.ZipFile(settings.dump_dir / member.zip) as archive:
                assert reader.read(member) == archive.read(member.member)
