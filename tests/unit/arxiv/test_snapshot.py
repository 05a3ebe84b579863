"""The snapshot reader, on the real lines and on bad ones."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from pipeline.arxiv import snapshot
from pipeline.arxiv.identifiers import split_version
from pipeline.arxiv.person_names import split_author_line
from pipeline.arxiv.record import is_withdrawn
from pipeline.arxiv.snapshot import Snapshot, parse_record
from pipeline.engine import progress
from pipeline.errors import MissingInput, PermanentFailure

from .conftest import line

PROJECT = Path(__file__).resolve().parents[3]


def ids_of(file: Path) -> list[str]:
    return [json.loads(text)["id"] for text in file.read_text().splitlines()]


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    folder = tmp_path / "cache"
    folder.mkdir()
    return folder


@pytest.fixture
def real(shared_data: Path) -> Path:
    return shared_data / "metadata" / "snapshot_200_lines.jsonl"


def test_the_200_true_lines_are_all_read(real: Path, cache: Path) -> None:
    found = Snapshot(real, cache).find(ids_of(real))
    assert len(found.records) == 200
    assert found.broken == {}
    assert all(record.title and record.abstract and record.authors for record in found.records.values())
    assert all(record.categories[0] == record.primary_category for record in found.records.values())


def test_a_true_line_gives_every_column(real: Path, cache: Path) -> None:
    record = Snapshot(real, cache).find(["0704.0001"]).records["0704.0001"]
    assert record.version == 2
    assert record.title.endswith("production cross sections at Tevatron and LHC energies")
    assert record.authors == ("C. Balázs", "E. L. Berger", "P. M. Nadolsky", "C. -P. Yuan")
    assert (record.published, record.updated) == ("2007-04-02", "2007-07-24")
    assert record.doi == "10.1103/PhysRevD.76.013009"
    assert record.journal_ref == "Phys.Rev.D76:013009,2007"
    assert record.comment == "37 pages, 15 figures; published version"
    assert (record.source, record.fetched_at, record.status) == ("snapshot", None, "present")


def test_the_one_withdrawn_paper_of_the_200_is_marked(real: Path, cache: Path) -> None:
    records = Snapshot(real, cache).find(ids_of(real)).records
    assert [name for name, record in records.items() if record.status != "present"] == ["0704.0156"]


def test_the_two_author_fields_of_the_200_lines_name_the_same_authors(real: Path) -> None:
    for content in map(json.loads, real.read_text().splitlines()):
        assert split_author_line(content["authors"]) == parse_record(content).authors


def test_lines_whose_keys_are_null_are_read(shared_data: Path, cache: Path) -> None:
    file = shared_data / "metadata" / "snapshot.jsonl"
    records = Snapshot(file, cache).find(ids_of(file)).records
    assert len(records) == 21
    old = records["quant-ph/9802040"]
    assert (old.categories, old.authors, old.version, old.abstract) == (("quant-ph",), (), None, None)
    assert old.status == "present"


def test_a_packed_snapshot_reads_the_same(real: Path, cache: Path, tmp_path: Path) -> None:
    packed = tmp_path / "snapshot.jsonl.gz"
    packed.write_bytes(gzip.compress(real.read_bytes()))
    wanted = ids_of(real)[5::17]
    assert Snapshot(packed, cache).find(wanted) == Snapshot(real, cache).find(wanted)
    assert Snapshot(packed, cache).digest(wanted) == Snapshot(real, cache).digest(wanted)


def test_a_snapshot_is_read_once(real: Path, cache: Path, tmp_path: Path) -> None:
    packed = tmp_path / "snapshot.jsonl.gz"
    packed.write_bytes(gzip.compress(real.read_bytes()))
    when = packed.stat().st_mtime_ns
    first = Snapshot(packed, cache).find(["0704.0001"])
    packed.write_bytes(bytes(packed.stat().st_size))
    os.utime(packed, ns=(when, when))
    assert Snapshot(packed, cache).find(["0704.0001"]) == first
    assert len(Snapshot(packed, cache).find(ids_of(real)).records) == 200


def test_papers_of_all_months_and_forms_are_found_in_any_order(snapshot_file: Path, cache: Path) -> None:
    names = ["2403.00001", "hep-th/9901001", "0704.0001", "math.GT/0309136", "2403.00002", "cs/0001001", "1501.00001"]
    snapshot_file.write_text("\n".join(map(line, names)) + "\n" + line("2403.00003v2") + "\r\n")
    found = Snapshot(snapshot_file, cache).find([*names, "2403.00003"])
    assert set(found.records) == {*names, "2403.00003"}
    assert set(found.dates.values()) == {"2024-05-01"}
    assert Snapshot(snapshot_file, cache).newest_update() == "2024-05-01"


@pytest.mark.parametrize("slip", ["9999-99-99", "2999-01-01"])
def test_a_day_that_is_none_or_yet_to_come_is_not_the_newest(snapshot_file: Path, cache: Path, slip: str) -> None:
    snapshot_file.write_text(line("2403.00001") + "\n" + line("2403.00002", update_date=slip))
    assert Snapshot(snapshot_file, cache).newest_update() == "2024-05-01"


def test_old_identifiers_with_a_version_are_found_without(snapshot_file: Path, cache: Path) -> None:
    snapshot_file.write_text(line("hep-th/9901001v2") + "\n" + line("nothing of arXiv's"))
    found = Snapshot(snapshot_file, cache).find(["hep-th/9901001", "nothing of arXiv's"])
    assert set(found.records) == {"hep-th/9901001", "nothing of arXiv's"}


def test_many_lines_in_many_row_groups_are_found(snapshot_file: Path, cache: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(snapshot, "_LINES_PER_BATCH", 7)
    monkeypatch.setattr(snapshot, "_ROWS_PER_GROUP", 2)
    names = [f"{month}.{number:05}" for number in range(1, 40) for month in (2401, 2402, 2403)]
    snapshot_file.write_text("\n".join(map(line, names)) + "\n" + line("2401.00001", title="Last") + "\n")
    found = Snapshot(snapshot_file, cache).find(names).records
    assert set(found) == set(names)
    assert found["2401.00001"].title == "Last"


BUILD = """
    import resource, sys
    from pathlib import Path
    from pipeline.engine import progress
    from pipeline.arxiv.snapshot import Snapshot

    class Notes(progress.Listener):
        def noted(self, message):
            print("built", flush=True)

    file, cache, limit = sys.argv[1:]
    if int(limit):
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
    with progress.listening(Notes()):
        print(len(Snapshot(Path(file), Path(cache)).find(["2403.00001"]).records))
"""


def build(file: Path, cache: Path, *, most_bytes: int = 0) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", dedent(BUILD), str(file), str(cache), str(most_bytes)]
    return subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_two_processes_at_once_read_the_file_once(snapshot_file: Path, cache: Path) -> None:
    snapshot_file.write_text("{broken\n" + "\n".join(line(f"2403.{number:05}") for number in range(1, 20_000)))
    told = [child.communicate(timeout=60)[0].split() for child in [build(snapshot_file, cache) for _ in range(2)]]
    assert sorted(told, key=len) == [["1"], ["built", "1"]]


@pytest.mark.parametrize("name", ["snapshot.jsonl", "snapshot.jsonl.gz"])
def test_a_disk_that_is_full_is_named_and_leaves_nothing_half(tmp_path: Path, cache: Path, name: str) -> None:
    file = tmp_path / name
    content = "\n".join(line(f"2403.{number:05}") for number in range(1, 20_000)).encode()
    file.write_bytes(gzip.compress(content, 1) if file.suffix == ".gz" else content)
    child = build(file, cache, most_bytes=300_000)
    said = child.communicate(timeout=60)[1]
    assert child.returncode == 1
    assert "PermanentFailure" in said
    assert f"{cache}/" in said
    assert "cannot be written" in said
    assert "free some disk space, or name another data root in CITELOOM_DATA" in said
    assert [path.suffix for path in cache.iterdir()] == [".lock"]
    assert len(Snapshot(file, cache).find(["2403.00001"]).records) == 1


def test_only_wanted_papers_come_back(real: Path, cache: Path) -> None:
    assert set(Snapshot(real, cache).find(["0704.0003", "9999.00001"]).records) == {"0704.0003"}
    assert Snapshot(real, cache).find([]).records == {}


def test_broken_lines_are_counted_and_the_rest_is_read(snapshot_file: Path, cache: Path) -> None:
    cut = line("2403.00002")[:80]
    shape = json.dumps({"id": "2403.00003", "versions": [7], "title": ["a list"]})
    lines = [line("2403.00001"), cut, "", "[1, 2]", "no json at all", '{"title": "no id"}', shape, line("2403.00004")]
    snapshot_file.write_text("\n".join(lines))
    converted = Snapshot(snapshot_file, cache)
    found = converted.find([f"2403.0000{number}" for number in range(1, 5)])
    assert set(found.records) == {"2403.00001", "2403.00004"}
    assert found.broken == {"2403.00002": 2, "2403.00003": 7}
    (file,) = cache.glob("*.parquet")
    assert converted.facts() == {"lines": 7, "broken_lines": [2, 4, 5, 6], "bytes": file.stat().st_size}


def test_a_readable_line_counts_before_a_broken_one(snapshot_file: Path, cache: Path) -> None:
    snapshot_file.write_text(line("2403.00001") + "\n" + line("2403.00001", title="Cut")[:-20])
    found = Snapshot(snapshot_file, cache).find(["2403.00001"])
    assert (found.records["2403.00001"].title, found.broken) == ("On 2403.00001", {})


def test_bytes_that_are_no_text_do_no_harm(snapshot_file: Path, cache: Path) -> None:
    snapshot_file.write_bytes(b"\xff\xfe\x00}\n" + line("2403.00001").encode() + b"\n")
    assert set(Snapshot(snapshot_file, cache).find(["2403.00001"]).records) == {"2403.00001"}


def test_an_id_that_is_not_the_first_key_is_found(snapshot_file: Path, cache: Path) -> None:
    snapshot_file.write_text(json.dumps({"title": "T", "id": "2403.00009", "categories": "cs.DB"}))
    assert Snapshot(snapshot_file, cache).find(["2403.00009"]).records["2403.00009"].title == "T"


def test_the_last_of_several_lines_of_a_paper_counts(snapshot_file: Path, cache: Path) -> None:
    snapshot_file.write_text(line("2403.00001", title="Old") + "\n" + line("2403.00001", title="New") + "\n")
    assert Snapshot(snapshot_file, cache).find(["2403.00001"]).records["2403.00001"].title == "New"


def test_a_changed_file_is_read_anew(snapshot_file: Path, cache: Path) -> None:
    snapshot_file.write_text(line("2403.00001", title="Before"))
    first = Snapshot(snapshot_file, cache).digest(["2403.00001"])
    snapshot_file.write_text(line("2403.00001", title="After!"))
    os.utime(snapshot_file, ns=(1, 1))
    assert Snapshot(snapshot_file, cache).find(["2403.00001"]).records["2403.00001"].title == "After!"
    assert Snapshot(snapshot_file, cache).digest(["2403.00001"]) != first


def test_news_of_other_papers_leave_the_digest_as_it_is(snapshot_file: Path, cache: Path) -> None:
    snapshot_file.write_text(line("2403.00001"))
    first = Snapshot(snapshot_file, cache).digest(["2403.00001", "2403.00002"])
    snapshot_file.write_text(line("2404.00005") + "\n" + line("2403.00001"))
    assert Snapshot(snapshot_file, cache).digest(["2403.00001", "2403.00002"]) == first
    snapshot_file.write_text(line("2403.00002") + "\n" + line("2403.00001") + "\n")
    assert Snapshot(snapshot_file, cache).digest(["2403.00001", "2403.00002"]) != first


def test_what_a_killed_build_left_is_replaced(snapshot_file: Path, cache: Path) -> None:
    snapshot_file.write_text(line("2403.00001"))
    Snapshot(snapshot_file, cache).facts()
    (file,) = cache.glob("*.parquet")
    file.rename(file.with_suffix(".tmp"))
    file.with_suffix(".tmp").write_bytes(b"half of a conversion")
    assert set(Snapshot(snapshot_file, cache).find(["2403.00001"]).records) == {"2403.00001"}
    assert sorted(left.suffix for left in cache.iterdir()) == [".lock", ".parquet"]


def test_a_killed_conversion_leaves_nothing_that_counts(snapshot_file: Path, cache: Path) -> None:
    snapshot_file.write_text("\n".join(line(f"2403.{number:05}") for number in range(1, 60_000)))
    child = build(snapshot_file, cache)
    deadline = time.monotonic() + 30
    while not list(cache.glob("*.tmp")) and time.monotonic() < deadline:
        time.sleep(0.01)
    child.kill()
    child.communicate()
    assert not list(cache.glob("*.parquet"))
    assert len(Snapshot(snapshot_file, cache).find(["2403.00001", "2403.59999"]).records) == 2


def test_what_earlier_versions_of_the_file_left_is_removed(snapshot_file: Path, cache: Path) -> None:
    for title in ("Old", "New"):
        snapshot_file.write_text(line("2403.00001", title=title) + "\n" * len(title))
        os.utime(snapshot_file, ns=(len(title), ord(title[0])))
        assert Snapshot(snapshot_file, cache).find(["2403.00001"]).records["2403.00001"].title == title
    assert len(list(cache.glob("*.parquet"))) == 1


def test_a_damaged_conversion_is_made_again(snapshot_file: Path, cache: Path) -> None:
    snapshot_file.write_text("\n".join(line(f"2403.{number:05}") for number in range(1, 2000)))
    whole = Snapshot(snapshot_file, cache).digest(["2403.00001", "2403.01999"])
    (file,) = cache.glob("*.parquet")
    content = file.read_bytes()
    # The last keeps the footer, so that the damage shows only once rows are read.
    for damaged in (b"", b"no Parquet" * 1000, content[:100], bytes(len(content) // 2) + content[len(content) // 2 :]):
        file.write_bytes(damaged)
        assert Snapshot(snapshot_file, cache).digest(["2403.00001", "2403.01999"]) == whole
        file.write_bytes(damaged)
        assert set(Snapshot(snapshot_file, cache).find(["2403.01999"]).records) == {"2403.01999"}


@pytest.mark.parametrize(
    ("content", "counts"),
    [
        ("", "(0 lines)"),
        ("\nno json\n\x00\n", "(2 lines, of which lines 2, 3 cannot be read)"),
        ('{"id": "row-1", "text": "of another data set"}', "(1 lines)"),
    ],
)
def test_a_file_without_a_line_of_arxivs_is_refused(
    snapshot_file: Path, cache: Path, content: str, counts: str
) -> None:
    snapshot_file.write_text(content)
    for _ in range(2):
        with pytest.raises(PermanentFailure, match=r"no line of arXiv's metadata.*CITELOOM_METADATA_SNAPSHOT") as error:
            Snapshot(snapshot_file, cache).digest(["2403.00001"])
        assert counts in str(error.value)


def test_broken_lines_are_told_once(snapshot_file: Path, cache: Path) -> None:
    snapshot_file.write_text(line("2403.00001") + "\n{broken\n")
    listener = Notes()
    with progress.listening(listener):
        for _ in range(2):
            Snapshot(snapshot_file, cache).find(["2403.00001"])
    (note,) = listener.notes
    assert "snapshot.jsonl has 2 lines, of which line 2 cannot be read" in note


class Notes:
    """Keeps what a user is told."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def started(self, stage: str, month: str) -> None: ...
    def advanced(self, stage: str, month: str, done: int, total: int | None) -> None: ...
    def finished(self, outcome: Any) -> None: ...
    def failed(self, stage: str, month: str, message: str, exit_code: int = 1) -> None: ...
    def noted(self, message: str) -> None:
        self.notes.append(message)


def test_a_missing_snapshot_is_named(tmp_path: Path, cache: Path) -> None:
    with pytest.raises(MissingInput, match=r"nowhere\.jsonl is not there: set CITELOOM_METADATA_SNAPSHOT"):
        Snapshot(tmp_path / "nowhere.jsonl", cache).find(["2403.00001"])


@pytest.mark.parametrize(
    "content",
    [b"no gzip", gzip.compress(line("2403.00001").encode() * 100, mtime=0)[:-20]],
    ids=["no gzip", "cut off"],
)
def test_a_packed_snapshot_that_is_broken_is_named(tmp_path: Path, cache: Path, content: bytes) -> None:
    file = tmp_path / "broken.jsonl.gz"
    file.write_bytes(content)
    with pytest.raises(PermanentFailure, match=r"broken\.jsonl\.gz cannot be read"):
        Snapshot(file, cache).find(["2403.00001"])


def test_forms_of_older_copies_are_read() -> None:
    record = parse_record({"id": "0704.0001v3", "versions": ["v1", "v2"], "categories": ["cs.CL cs.AI"], "title": "T"})
    assert (record.arxiv_id, record.version, record.categories) == ("0704.0001", 2, ("cs.CL", "cs.AI"))


def test_names_stand_in_reading_order() -> None:
    content = {
        "id": "1",
        "authors_parsed": [["Knuth", "Donald E.", ""], ["King", "M. L.", "Jr.", "MIT"], ["CERN", "", ""]],
    }
    assert parse_record(content).authors == ("Donald E. Knuth", "M. L. King Jr.", "CERN")


def test_an_author_line_is_taken_apart() -> None:
    text = "A. One (Lab, City), B. Two\n  (MIT (US)) and C. Three, and D. Four, et al."
    assert split_author_line(text) == ("A. One", "B. Two", "C. Three", "D. Four")


def test_a_suffix_behind_a_comma_is_no_author() -> None:
    assert split_author_line("A. One, Jr., B. Two, III and C. Ivanov") == ("A. One Jr.", "B. Two III", "C. Ivanov")


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("C. Bal\\'azs", "C. Balázs"),
        ('Franz G\\"{a}hler', "Franz Gähler"),
        ("Rastislav \\v{S}r\\'amek", "Rastislav Šrámek"),
        ("Mikkel {\\O}bro", "Mikkel Øbro"),
        ("D. Mar\\'{\\i}n-Barba", "D. Marín-Barba"),
        ("{\\L}ukasz Stra{\\ss}e", "Łukasz Straße"),
        ("Fran\\c{c}ois N.d'Ambrumenil", "François N. d'Ambrumenil"),
        ("\\vec Strange", "\\vec Strange"),
    ],
)
def test_accents_in_tex_are_letters(typed: str, name: str) -> None:
    assert split_author_line(typed) == (name,)


@pytest.mark.parametrize(
    "comment",
    [
        "This paper has been withdrawn by the author due to a crucial error in equation 1",
        "Withdrawn",
        "withdrawn by the authors",
        "12 pages; this paper has been withdrawn",
        "This submission has been withdrawn by arXiv administrators due to disputed authorship",
        "The authors have withdrawn this paper",
        "Paper withdrawn, see 2301.00001",
    ],
)
def test_a_notice_in_the_comment_is_a_withdrawal(comment: str) -> None:
    assert is_withdrawn(comment, None)


@pytest.mark.parametrize(
    ("comment", "abstract"),
    [
        ("An earlier version of this paper was withdrawn", None),
        ("Supersedes the withdrawn arXiv:0704.0001", None),
        ("10 pages", "We study drugs withdrawn from the market. The paper finds that bids were withdrawn."),
        (None, "Cash is withdrawn by authors of fraud in this work."),
        (None, None),
    ],
)
def test_talk_of_withdrawing_is_no_withdrawal(comment: str | None, abstract: str | None) -> None:
    assert not is_withdrawn(comment, abstract)


def test_a_notice_in_the_place_of_the_abstract_is_a_withdrawal() -> None:
    assert is_withdrawn(None, "This paper has been withdrawn by the authors.")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("1707.08567v2", ("1707.08567", 2)),
        ("quant-ph/0201082v1", ("quant-ph/0201082", 1)),
        ("math/0309136", ("math/0309136", None)),
    ],
)
def test_a_version_is_split_off(text: str, parts: tuple[str, int | None]) -> None:
    assert split_version(text) == parts
