"""The snapshot reader, on the real lines and on bad ones."""

import gzip
import json
import os
import resource
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

import pytest

from pipeline.arxiv.record import Record, is_withdrawn
from pipeline.arxiv.snapshot import Snapshot, parse_record
from pipeline.engine.progress import listening
from pipeline.errors import MissingInput, PermanentFailure
from pipeline.identity.people import split_author_line
from tests.cases import cases
from tests.processes import SPAWN, in_new_process

from .conftest import line, messages

pytestmark = pytest.mark.slow


def write_papers(file, count):
    """A snapshot of papers of one month, from 2403.00001 on."""
    file.write_text("\n".join(line(f"2403.{number:05}") for number in range(1, count + 1)))


def find_one(file, cache):
    return Snapshot(file, cache).find(["2403.00001"])["2403.00001"]


def ids_of(file):
    return [json.loads(text)["id"] for text in file.read_text().splitlines()]


@pytest.fixture
def cache(tmp_path):
    folder = tmp_path / "cache"
    folder.mkdir()
    return folder


@pytest.fixture
def real(shared_data):
    return shared_data / "metadata" / "snapshot_200_lines.jsonl"


def test_the_200_true_lines_are_all_read(real, cache):
    found = Snapshot(real, cache).find(ids_of(real))
    assert len(found) == 200
    assert all(paper.title and paper.abstract and paper.authors for paper in found.values())
    assert all(paper.categories[0] == paper.primary_category for paper in found.values())
    assert [name for name, paper in found.items() if paper.status != "present"] == ["0704.0156"]
    paper = found["0704.0001"]
    assert paper.title.endswith("production cross sections at Tevatron and LHC energies")
    assert replace(paper, title=None, abstract=None) == Record(
        arxiv_id="0704.0001",
        version=2,
        authors=("C. Balázs", "E. L. Berger", "P. M. Nadolsky", "C. -P. Yuan"),
        categories=("hep-ph",),
        primary_category="hep-ph",
        published="2007-04-02",
        updated="2007-07-24",
        doi="10.1103/PhysRevD.76.013009",
        journal_ref="Phys.Rev.D76:013009,2007",
        comment="37 pages, 15 figures; published version",
        source="snapshot",
    )


def test_the_two_author_fields_of_the_200_lines_name_the_same_authors(real):
    for content in map(json.loads, real.read_text().splitlines()):
        assert split_author_line(content["authors"]) == parse_record(content).authors


def test_a_packed_snapshot_reads_the_same_and_is_read_once(real, cache, tmp_path):
    packed = tmp_path / "snapshot.jsonl.gz"
    packed.write_bytes(gzip.compress(real.read_bytes()))
    wanted = [*ids_of(real)[5::17], "9999.00001"]
    found, digest = Snapshot(real, cache).find(wanted), Snapshot(real, cache).digest(wanted)
    assert set(found) == set(wanted[:-1])
    assert Snapshot(packed, cache).find(wanted) == found
    when = packed.stat().st_mtime_ns
    packed.write_bytes(bytes(packed.stat().st_size))
    os.utime(packed, ns=(when, when))
    again = Snapshot(packed, cache)
    assert (again.find(wanted), again.digest(wanted)) == (found, digest)
    assert len(again.find(ids_of(real))) == 200
    assert again.find([]) == {}


@pytest.mark.parametrize(
    ("fields", "read"),
    [
        ({"id": "0704.0001v3"}, {"arxiv_id": "0704.0001"}),
        ({"versions": ["v1", "v2"]}, {"version": 2, "published": None}),
        ({"categories": ["cs.CL cs.AI"]}, {"categories": ("cs.CL", "cs.AI")}),
        ({"authors_parsed": [["King", "M. L.", "Jr.", "MIT"]]}, {"authors": ("M. L. King Jr.",)}),
    ],
)
def test_fields_of_a_line_and_of_older_copies_are_read(fields, read):
    record = parse_record({"id": "1", "categories": "cs.CL"} | fields)
    assert {name: getattr(record, name) for name in read} == read


def test_papers_of_all_months_and_forms_are_found_in_any_order(snapshot_file, cache):
    names = [
        "2403.00001",
        "hep-th/9901001",
        "0704.0001",
        "math.GT/0309136",
        "2403.00002",
        "cs/0001001",
        "1501.00001",
    ]
    versions = ["2403.00003v2", "hep-th/9901002v2", "nothing of arXiv's"]
    snapshot_file.write_text(
        "\n".join(map(line, names)) + "\n" + "\r\n".join(map(line, versions)) + "\r\n"
    )
    wanted = [*names, "2403.00003", "hep-th/9901002", "nothing of arXiv's"]
    found = Snapshot(snapshot_file, cache).find(wanted)
    assert set(found) == set(wanted)
    assert Snapshot(snapshot_file, cache).update_days(wanted) == dict.fromkeys(wanted, "2024-05-01")
    assert Snapshot(snapshot_file, cache).newest_update() == "2024-05-01"


@pytest.mark.parametrize("slip", ["9999-99-99", "2999-01-01"])
def test_a_day_that_is_none_or_yet_to_come_is_not_the_newest(snapshot_file, cache, slip):
    snapshot_file.write_text(line("2403.00001") + "\n" + line("2403.00002", update_date=slip))
    assert Snapshot(snapshot_file, cache).newest_update() == "2024-05-01"


def build(file, cache, most_bytes=0):
    """How many papers are found, and what is told of lines; most_bytes: of any file."""
    if most_bytes:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))
    events = []
    with listening(events.append):
        found = Snapshot(file, cache).find(["2403.00001", "2403.20000"])
    return len(found), [told for told in messages(events) if "cannot be read" in told]


def test_two_processes_at_once_read_the_file_once(snapshot_file, cache):
    write_papers(snapshot_file, 20_000)  # with the line before them, two batches of several groups
    snapshot_file.write_text(f"{{broken\n{snapshot_file.read_text()}")
    with ProcessPoolExecutor(2, SPAWN) as pool:
        built = list(pool.map(build, [snapshot_file] * 2, [cache] * 2))
    assert sorted((found, len(told)) for found, told in built) == [(2, 0), (2, 1)]


def test_a_disk_that_is_full_is_named_and_leaves_nothing_half(snapshot_file, cache):
    write_papers(snapshot_file, 20_000)
    with pytest.raises(PermanentFailure, match=rf"{cache}/.* cannot be written .*: free some disk"):
        in_new_process(build, snapshot_file, cache, 300_000)
    assert [path.suffix for path in cache.iterdir()] == [".lock"]
    assert find_one(snapshot_file, cache)


def test_broken_lines_are_counted_and_told_once_and_the_rest_is_read(snapshot_file, cache):
    cut = line("2403.00002")[:80]
    shape = json.dumps({"id": "2403.00003", "versions": [7], "title": ["a list"]})
    deep = f'{{"id": "2403.00003", "update_date": {"[" * 100_000}{"]" * 100_000}}}'
    versions = [[{"version": "v" + "9" * 20}], [{"version": "v1", "created": "1 Jan 99999999999"}]]
    lines = [
        line("2403.00001"),
        deep,
        json.dumps({"id": "2403.00003", "title": "x" * 10_000_000}),
        *(line("2403.00003", versions=version) for version in versions),
        cut,
        "",
        "[1, 2]",
        "no json at all",
        '{"title": "no id"}',
        shape,
        line("2403.00004"),
    ]
    snapshot_file.write_text("\n".join(lines))
    events = []
    with listening(events.append):
        for _ in range(2):
            converted = Snapshot(snapshot_file, cache)
            found = converted.find([f"2403.0000{number}" for number in range(1, 5)])
            assert set(found) == {"2403.00001", "2403.00004"}
    (note,) = messages(events)
    assert "snapshot.jsonl has 11 lines, of which 6 cannot be read (first: line 2)" in note
    (file,) = cache.glob("*.parquet")
    assert converted.facts() == {"lines": 11, "broken_lines": 6, "bytes": file.stat().st_size}


@pytest.mark.parametrize(
    "lines",
    [
        [line("2403.00001", title="T"), line("2403.00001", title="Cut")[:-20]],
        [line("2403.00001", title="Old"), line("2403.00001", title="T")],
        ["\udcff\udcfe\x00}", line("2403.00001", title="T")],
    ],
    ids=[
        "a readable line counts before a broken one",
        "the last counts",
        "no text",
    ],
)
def test_of_several_lines_the_last_readable_one_counts(snapshot_file, cache, lines):
    snapshot_file.write_text("\n".join(lines), encoding="utf-8", errors="surrogateescape")
    found = Snapshot(snapshot_file, cache).find(["2403.00001"])
    assert found["2403.00001"].title == "T"


def test_a_changed_file_is_read_anew_and_its_earlier_conversion_is_removed(snapshot_file, cache):
    snapshot_file.write_text(line("2403.00001", title="Before"))
    first = Snapshot(snapshot_file, cache).digest(["2403.00001"])
    snapshot_file.write_text(line("2403.00001", title="After!"))
    os.utime(snapshot_file, ns=(1, 1))
    assert find_one(snapshot_file, cache).title == "After!"
    assert Snapshot(snapshot_file, cache).digest(["2403.00001"]) != first
    assert len(list(cache.glob("*.parquet"))) == 1


def test_a_damaged_conversion_is_made_again(snapshot_file, cache):
    write_papers(snapshot_file, 2000)
    whole = Snapshot(snapshot_file, cache).digest(["2403.00001", "2403.01999"])
    (file,) = cache.glob("*.parquet")
    content = file.read_bytes()
    half = len(content) // 2
    # The second keeps the footer, so that the damage shows only once rows are read.
    for damaged in (b"", bytes(half) + content[half:]):
        file.write_bytes(damaged)
        assert Snapshot(snapshot_file, cache).digest(["2403.00001", "2403.01999"]) == whole
        file.write_bytes(damaged)
        assert find_one(snapshot_file, cache)


@cases("unit/arxiv/cases.toml", "a_file_without_a_line_of_arxivs_is", ["content", "counts"])
def test_a_file_without_a_line_of_arxivs_is_refused(snapshot_file, cache, content, counts):
    snapshot_file.write_text(content)
    for _ in range(2):
        with pytest.raises(
            PermanentFailure, match=r"no line of arXiv's metadata.*CITELOOM_METADATA_SNAPSHOT"
        ) as error:
            Snapshot(snapshot_file, cache).digest(["2403.00001"])
        assert counts in str(error.value)


def test_a_missing_snapshot_is_named(tmp_path, cache):
    with pytest.raises(MissingInput, match=r"nowhere\.jsonl is not there"):
        Snapshot(tmp_path / "nowhere.jsonl", cache).find(["2403.00001"])


@pytest.mark.parametrize(
    "content",
    [b"no gzip", gzip.compress(line("2403.00001").encode() * 100, mtime=0)[:-20]],
    ids=["no gzip", "cut off"],
)
def test_a_packed_snapshot_that_is_broken_is_named(tmp_path, cache, content):
    file = tmp_path / "broken.jsonl.gz"
    file.write_bytes(content)
    with pytest.raises(PermanentFailure, match=r"broken\.jsonl\.gz cannot be read"):
        Snapshot(file, cache).find(["2403.00001"])


@cases("unit/names.toml", "author_lines")
def test_an_author_line_is_taken_apart_and_accents_in_tex_are_letters(case):
    line, *names = case
    assert split_author_line(line) == tuple(names)


@cases("unit/arxiv/withdrawals.toml", "withdrawn")
def test_a_notice_is_a_withdrawal(case):
    assert is_withdrawn(*case)


@cases("unit/arxiv/withdrawals.toml", "present")
def test_talk_of_withdrawing_is_no_withdrawal(case):
    assert not is_withdrawn(*case)
