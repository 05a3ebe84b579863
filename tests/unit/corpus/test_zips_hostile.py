"""Zips that lie or break: every name is read or told, and nobody else's page is lost."""

import os
import struct
import subprocess
import sys

import pytest

from pipeline.corpus.dump.catalogue import broken_zips, read_dump
from pipeline.corpus.dump.member import Member, MemberError
from pipeline.corpus.dump.reader import MemberReader
from tests.conftest import PROJECT
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
def test_no_hostile_zip_takes_512_mb(tmp_path):
    """One after another in a process that did nothing else."""
    for number, hostile in enumerate(HOSTILE.values()):
        (tmp_path / str(number)).mkdir()
        write_zip(tmp_path / str(number) / "warnings.zip", {OTHER: b"<html>unharmed</html>"})
        hostile.write(tmp_path / str(number) / "errors.zip")
    read_each = (
        "import re, sys; from pathlib import Path\nfrom tests.unit.corpus.building import"
        " dump_settings\nfrom tests.unit.corpus.test_zips_hostile import"
        " read_all\nprint(sum(len(read_all(dump_settings(folder))[0]) for folder in"
        " Path(sys.argv[1]).iterdir()))\nprint(re.search(r'VmHWM:\\s+(\\d+) kB',"
        " Path('/proc/self/status').read_text())[1])"
    )
    environment = {**os.environ, "PYTHONPATH": str(PROJECT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", read_each, str(tmp_path)],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    pages, kilobytes = map(int, done.stdout.split())
    assert pages == sum(len(hostile.read) + 1 for hostile in HOSTILE.values())
    assert kilobytes < 512 * 1024


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
