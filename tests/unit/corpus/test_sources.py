"""Pages of new months: archives of sources, the main file, the sandbox, and the stage `pages`."""

import gzip
import os
import shutil
import socket
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.corpus.dump.catalogue import months_in_dump, read_dump
from pipeline.corpus.parse import html
from pipeline.corpus.sources.archives import (
    SourceError,
    choose_main_file,
    months_of_sources,
    sources_of_month,
    unpack,
)
from pipeline.corpus.sources.converter import find_converter
from pipeline.corpus.sources.stage import PAGES
from pipeline.engine.run import State, run_stage, state
from pipeline.errors import SettingError
from tests.cases import cases
from tests.processes import SPAWN, wait_until
from tests.required_tools import missing_tool
from tests.unit.arxiv.conftest import line
from tests.unit.corpus import fake_latexml
from tests.unit.corpus.building import ledger, names, write_zip
from tests.unit.corpus.fake_latexml import document, eprint, tar_of
from tests.workspaces import changed, make_workspace

pytestmark = pytest.mark.slow

MONTH = "2026-10"
FIRST, SECOND, THIRD = "2610.00001", "2610.00002", "2610.00003"
PAPER = eprint({"main.tex": document()})


# ---- archives ----


def special(name, kind):
    member = tarfile.TarInfo(name)
    member.type, member.linkname = getattr(tarfile, kind), "/tmp"
    return member


@cases("unit/corpus/archives.toml")
def test_only_known_files_are_unpacked_and_only_below_their_folder(tmp_path, case):
    links = [special(name, kind) for name, kind in case.get("links", {}).items()]
    tar = tar_of(dict.fromkeys(case["files"], b""), *links)
    source = gzip.compress(tar) if case.get("packed", True) else tar
    assert unpacked(tmp_path, source) == case["unpacked"]


def unpacked(folder, source):
    """The files that come of a source; none of them is a link or beside their folder."""
    (folder / "paper").mkdir()
    unpack(source, folder / "paper")
    assert not any(path.is_symlink() for path in folder.rglob("*"))
    assert [path.name for path in folder.iterdir()] == ["paper"]
    return names(folder / "paper")


def sparse():
    """A tar of 2 KB with a file that it says to be a terabyte of zeros."""
    member = special("a.tex", "GNUTYPE_SPARSE")
    head = bytearray(member.tobuf(tarfile.GNU_FORMAT))
    head[483:495] = b"\x80" + (1 << 40).to_bytes(11, "big")
    head[148:156] = b" " * 8
    head[148:156] = b"%06o\0 " % sum(head)
    return bytes(head) + bytes(1024)


@pytest.mark.parametrize(
    ("source", "files"),
    [
        (gzip.compress(b"\\documentclass{article}"), ["paper.tex"]),
        (b"%PDF-1.5", ["paper.pdf"]),
        (gzip.compress(b"%!PS-Adobe"), ["paper.ps"]),
        (tar_of({f"{'e' * 300}.tex": b""}), []),
        (sparse(), []),
    ],
    ids=["one file", "a PDF", "PostScript", "a name too long", "sparse"],
)
def test_a_source_of_one_file_is_unpacked_by_its_kind(tmp_path, source, files):
    assert unpacked(tmp_path, source) == files


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (PAPER[:-20], "corrupt_source"),
        (b"\x1f\x8b" + bytes(range(50)), "corrupt_source"),
        (tar_of({"a.tex": bytes(9000)})[:3000], "corrupt_source"),
        (eprint({f"{number}.tex": b"" for number in range(5001)}), "too_large"),
    ],
    ids=["cut off", "damaged", "a tar that is cut off", "too many files"],
)
def test_a_damaged_or_excessive_source_is_refused(tmp_path, source, reason):
    assert refusal(source, tmp_path) == reason


def test_a_bomb_is_refused(tmp_path):
    assert refusal(gzip.compress(bytes(513 << 20), 1), tmp_path) == "too_large"


def refusal(source, folder):
    with pytest.raises(SourceError) as refusal:
        unpack(source, folder)
    return refusal.value.reason


@pytest.fixture
def sources(tmp_path):
    (tmp_path / "sources").mkdir()
    return tmp_path / "sources"


def bulk_tar(sources, number, members):
    yymm = "2610"
    content = {f"{yymm}/{name}": member for name, member in members.items()}
    (sources / f"arXiv_src_{yymm}_{number:03}.tar").write_bytes(tar_of(content))


def test_the_newest_source_of_each_paper_is_found_in_tars_e_prints_and_folders(sources):
    bulk_tar(sources, 1, {f"{FIRST}.gz": b"old", f"{SECOND}.pdf": b"%PDF", "notes.txt": b""})
    bulk_tar(sources, 2, {f"{FIRST}.gz": b"new"})
    (sources / f"{SECOND}v2.tar.gz").write_bytes(b"second")
    (sources / f"{SECOND}v10.gz").write_bytes(b"tenth")
    (sources / THIRD).mkdir()
    (sources / THIRD / "main.tex").write_bytes(b"text")
    (sources / "astro-ph0001001.gz").write_bytes(b"")
    (sources / "readme.txt").write_bytes(b"")
    found, damaged = sources_of_month(sources, MONTH)
    versions = [(source.arxiv_id, source.version) for source in found]
    assert versions == [(FIRST, 0), (SECOND, 10), (THIRD, 0)]
    assert [source.read() for source in found[:2]] == [b"new", b"tenth"]
    assert (damaged, months_of_sources(sources)) == ({}, ["2000-01", MONTH])


def test_a_damaged_tar_gives_what_can_be_read_and_is_named(sources):
    bulk_tar(sources, 1, {f"{FIRST}.gz": PAPER, f"{SECOND}.gz": bytes(9000)})
    file = sources / "arXiv_src_2610_001.tar"
    file.write_bytes(file.read_bytes()[:6000])
    found, damaged = sources_of_month(sources, MONTH)
    assert (found[0].read(), list(damaged)) == (PAPER, [file.name])


def test_a_source_too_large_is_not_read(sources):
    file = sources / f"{FIRST}.gz"
    file.touch()
    os.truncate(file, 513 << 20)
    (source,), _ = sources_of_month(sources, MONTH)
    with pytest.raises(SourceError, match="too_large"):
        source.read()


# ---- the main file ----


@cases("unit/corpus/main_files.toml")
def test_the_main_file_is_chosen_or_a_reason_says_why_not(tmp_path, case):
    for name, content in case["files"].items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content.replace("DOC", document().decode()))
    if "chosen" in case:
        main_file, others = choose_main_file(tmp_path)
        assert [main_file, *others] == case["chosen"]
    else:
        with pytest.raises(SourceError) as refusal:
            choose_main_file(tmp_path)
        assert refusal.value.reason == case["reason"]


# ---- the stage ----


@pytest.fixture
def place(tmp_path, sources, monkeypatch):
    """A workspace whose converter is a script that is not confined."""
    fake_latexml.install(tmp_path / "bin", monkeypatch)
    (tmp_path / "dump").mkdir()
    snapshot = tmp_path / "snapshot.jsonl"
    papers = [line(name) for name in (FIRST, SECOND, THIRD)]
    snapshot.write_text("\n".join([*papers, line("2610.00004", categories="math.GT")]))
    return make_workspace(
        tmp_path / "data",
        dump_dir=tmp_path / "dump",
        metadata_snapshot=snapshot,
        sources=sources,
        convert_unsafe=True,
        workers=2,
    )


def convert(place, **options):
    """The rows and the ledger's reasons of a run."""
    run_stage(PAGES, place, MONTH, **options)
    rows = place.root.rows(PAGES.table, MONTH)
    severities = {row["arxiv_id"]: row["severity"] for row in rows}
    return severities, dict(ledger(place, PAGES.name, MONTH))


def test_each_source_is_a_page_of_its_severity_or_has_a_reason(place, sources):
    papers = {
        FIRST: {"main.tex": document("One", "log Status:conversion:1"), "b.tex": document()},
        SECOND: {"a.tex": document("Two", "log Error:x", "log Error:last y", "log Status:conversion:2")},
        THIRD: {"a.tex": document("Three", "log Fatal:timeout it ends", "log Status:conversion:3")},
        "2610.00004": {},
        "2610.00005": {},
    }  # fmt: skip
    bulk_tar(sources, 1, {f"{name}.gz": eprint(files) for name, files in papers.items()})
    severities, left_out = convert(place)
    assert severities == {FIRST: "warning", SECOND: "error"}
    assert left_out == {
        FIRST: "other_main_file",
        THIRD: "conversion_failed",
        "2610.00004": "not_computer_science",
        "2610.00005": "no_metadata",
    }
    pages = read_dump(place.settings).pages(MONTH).to_pylist()
    assert {page["arxiv_id"]: page["subset"] for page in pages} == severities
    assert [row["last_error"] for row in place.root.rows(PAGES.table, MONTH)][1] == "Error:last y"
    assert months_in_dump(place.settings) == [MONTH]
    assert "--preload=ar5iv.sty" in page_of(place, FIRST, "warning").read_text()


def page_of(place, name, severity="no_problem"):
    return place.settings.dump_dir / severity / "2610" / f"{name}.html"


def test_an_unchanged_source_is_not_converted_again(place, sources):
    bulk_tar(sources, 1, {f"{FIRST}.gz": PAPER, f"{SECOND}.gz": eprint({"main.tex": b"text"})})
    first = convert(place)
    assert first == ({FIRST: "no_problem"}, {SECOND: "no_main_file"})
    page_of(place, FIRST).write_text("kept")
    (sources / f"{THIRD}.gz").write_bytes(PAPER)  # a new tar makes the month out of date
    assert state(PAGES, place, MONTH) is State.STALE
    assert convert(place) == ({FIRST: "no_problem", THIRD: "no_problem"}, first[1])
    assert page_of(place, FIRST).read_text() == "kept"
    assert state(PAGES, place, MONTH) is State.DONE
    assert convert(place, force=True)[1] == first[1]
    assert page_of(place, FIRST).read_text() != "kept"


def test_a_new_version_replaces_the_page_also_where_it_gives_none(place, sources):
    (sources / f"{FIRST}v1.gz").write_bytes(PAPER)
    convert(place)
    (sources / f"{FIRST}v2.gz").write_bytes(
        eprint({"a.tex": document("Two.", "log Status:conversion:2")})
    )
    assert convert(place)[0] == {FIRST: "error"}
    assert names(place.settings.dump_dir) == [f"error/2610/{FIRST}.html"]
    (sources / f"{FIRST}v3.gz").write_bytes(gzip.compress(b"%auto-ignore\n"))
    assert convert(place) == ({}, {FIRST: "withdrawn"})
    assert names(place.settings.dump_dir) == []


def test_a_page_that_was_fetched_or_is_in_a_zip_stays(place, sources):
    bulk_tar(sources, 1, {f"{name}.gz": PAPER for name in (FIRST, SECOND, THIRD)})
    write_zip(place.settings.dump_dir / "warnings.zip", {f"warning/2610/{FIRST}.html": b"<html>"})
    fetched = place.settings.dump_dir / "2610" / f"{SECOND}.html"
    fetched.parent.mkdir()
    fetched.write_bytes(b"<html>")
    for _ in range(2):
        assert convert(place, force=True) == (
            {THIRD: "no_problem"},
            {FIRST: "in_dump", SECOND: "in_dump"},
        )
    assert fetched.read_bytes() == b"<html>"


@pytest.mark.parametrize(
    ("commands", "detail"),
    [
        (["run exit 7", "log Fatal:memory is full", "log Status:conversion:3"], "Fatal:memory is full"),
        (["run head -c 100 $page >$page.2; mv $page.2 $page"], "without </html>"),
        (["run rm $page; ln -s /etc/passwd $page"], "without </html>"),
        (["run rm $page; mkfifo $page"], "without </html>"),
        (["run rm $log; echo Can\\'t locate LaTeXML.pm >&2"], "Can't locate LaTeXML.pm"),
    ],
    ids=["fatal", "cut", "a link", "a pipe", "no log"],
)  # fmt: skip
def test_a_failed_conversion_is_in_the_ledger_with_the_last_error(place, sources, commands, detail):
    (sources / f"{FIRST}.gz").write_bytes(eprint({"a.tex": document("Text.", *commands)}))
    assert convert(place) == ({}, {FIRST: "conversion_failed"})
    ((said,),) = ledger(place, PAGES.name, MONTH, ["detail"])
    assert detail in said


def test_a_conversion_that_takes_too_long_is_ended(place, sources, tmp_path):
    converter = replace(find_converter(place.settings), seconds=1.0)
    paper = eprint({"a.tex": document("Text.", "run sleep 3600")})
    unpack(paper, tmp_path)
    (tmp_path / "out").mkdir()
    with pytest.raises(SourceError, match="too_slow"):
        converter.convert(tmp_path, "a.tex", tmp_path / "out")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"metadata_snapshot": None}, "no metadata of 2026-10"),
        ({"dump_dir": "memory://dump"}, "CITELOOM_DUMP_DIR is the address"),
        ({"bindings": Path("/usr")}, "CITELOOM_BINDINGS: .* no ar5iv.sty.ltxml"),
    ],
)
def test_what_cannot_be_converted_is_refused(place, sources, changes, message):
    (sources / f"{FIRST}.gz").write_bytes(PAPER)
    with pytest.raises(SettingError, match=message):
        convert(changed(place, **changes))


def test_without_a_converter_that_runs_confined_the_message_says_what_to_do(
    place, monkeypatch, tmp_path
):
    confined = changed(place, convert_unsafe=False).settings
    program = tmp_path / "broken" / "latexml_oxide"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    with pytest.raises(SettingError, match=r"papers cannot be converted here.*CONVERT_UNSAFE"):
        find_converter(confined)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SettingError, match="install Debian's package latexml"):
        find_converter(confined)


@pytest.mark.faults
def test_a_killed_month_goes_on_after_its_last_page(place, sources, tmp_path):
    """The second paper's conversion waits for a file, at first for ever."""
    mark = tmp_path / "go"
    slow = document("Slow.", f"run while [ ! -e {mark} ]; do sleep 0.1; done")
    bulk_tar(sources, 1, {f"{FIRST}.gz": PAPER, f"{SECOND}.gz": eprint({"main.tex": slow})})
    child = SPAWN.Process(target=run_stage, args=(PAGES, place, MONTH))
    child.start()
    wait_until(page_of(place, FIRST).exists)
    child.kill()
    child.join()
    page_of(place, FIRST).write_text("kept")
    assert not place.root.file(PAGES.table, MONTH).exists()
    mark.touch()
    assert convert(place) == ({FIRST: "no_problem", SECOND: "no_problem"}, {})
    assert page_of(place, FIRST).read_text() == "kept"
    assert names(place.cache("conversions")) == []


# ---- the sandbox ----


@pytest.fixture
def confined(place):
    """The workspace with its converter confined."""
    confined = changed(place, convert_unsafe=False)
    try:
        find_converter(confined.settings)
    except SettingError as error:
        missing_tool(f"bubblewrap ({error})")
    return confined


HOSTILE = """
cat /etc/passwd /proc/self/environ {secret} >>$page
env >>$page
ls / >>$page
echo pwned >{outside}/written
echo pwned >main.tex
echo pwned >/usr/written
perl -e 'use IO::Socket::INET; print "net\n" if IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => {port}, Timeout => 2)' >>$page
head -c 200000000 /dev/zero >$page.large
perl -e '$a = "x" x 7e9; print "memory\n"' >>$page
"""


def test_a_converter_that_a_paper_has_taken_over_reaches_nothing(
    confined, sources, tmp_path, monkeypatch
):
    monkeypatch.setenv("SENTINEL", "of the environment")
    secret = tmp_path / "secret.txt"
    secret.write_text("of a file")
    with socket.create_server(("127.0.0.1", 0)) as server:
        values = {"secret": secret, "outside": tmp_path, "port": server.getsockname()[1]}
        commands = [f"run {command}" for command in HOSTILE.format(**values).strip().splitlines()]
        commands += ["run echo reached the end >>$page", "run echo '</html>' >>$page"]
        (sources / f"{FIRST}.gz").write_bytes(eprint({"main.tex": document("Text.", *commands)}))
        assert convert(confined) == ({FIRST: "no_problem"}, {})
    page = page_of(confined, FIRST).read_text()
    assert "reached the end" in page
    for word in ("root:", "of the environment", "of a file", "net\n", "memory\n", "home"):
        assert word not in page
    assert not (tmp_path / "written").exists()
    assert not Path("/usr/written").exists()


@pytest.fixture
def latexml(confined, monkeypatch):
    """The workspace with LaTeXML itself."""
    folders = os.environ["PATH"].split(os.pathsep)[1:]
    monkeypatch.setenv("PATH", os.pathsep.join(folders))
    if not shutil.which("latexmlc"):
        missing_tool("latexml")
    return confined


def test_a_paper_that_reads_this_machine_gets_nothing(latexml, sources, tmp_path, monkeypatch):
    """Each of these LaTeXML 0.8.7 executes or reads where nothing confines it."""
    monkeypatch.setenv("SENTINEL", "of the environment")
    secret, written = tmp_path / "secret.tex", tmp_path / "written"
    secret.write_text("Words of a file.")
    (sources.parent / "beside.tex").write_text("Words of a file.")
    perl = f"open(my $file, '>', '{written}'); print $file 'pwned'; 1;".encode()
    body = f"""An ordinary sentence.
        \\input{{{secret}}} \\input{{../../../../../{secret}}} \\input{{../beside}}
        \\input{{/proc/self/environ}} \\input{{/etc/passwd}} \\input{{|"id"}}
        \\immediate\\write18{{echo pwned >{written}}}
        \\newread\\file \\openin\\file={secret} \\read\\file to\\line Read: \\line."""
    files = {"planted.sty.ltxml": perl, "latexml.sty.ltxml": perl, "--preload=planted.sty": b""}
    text = document(body).replace(b"\\begin", b"\\usepackage{planted}\\begin", 1)
    (sources / f"{FIRST}.gz").write_bytes(eprint({**files, "main.tex": text}))
    assert convert(latexml) == ({FIRST: "error"}, {})
    page = page_of(latexml, FIRST, "error").read_text()
    assert "An ordinary sentence." in page
    for word in ("Words of", "of the environment", "root:", "uid="):
        assert word not in page
    assert not written.exists()


@pytest.mark.parametrize("with_bindings", [False, True])
def test_latexml_reads_the_printed_bibliography(latexml, sources, shared_data, with_bindings):
    bindings = shared_data / "ar5iv-bindings" if with_bindings else None
    text = document("Text \\cite{a} and $x_1$.\\bibliography{refs}")
    printed = b"\\begin{thebibliography}{1}\\bibitem{a} As printed.\\end{thebibliography}"
    paper = {"main.tex": text, "refs.bib": b"@misc{a, title={From the database}}"}
    (sources / f"{FIRST}.gz").write_bytes(eprint({**paper, "main.bbl": printed}))
    (sources / f"{SECOND}.gz").write_bytes(eprint(paper))
    assert convert(changed(latexml, bindings=bindings)) == (
        {FIRST: "no_problem", SECOND: "no_problem"},
        {},
    )
    assert "As printed." in page_of(latexml, FIRST).read_text()
    page = html.parse(page_of(latexml, SECOND).read_bytes())
    assert [item.title for item in page.bibliography] == ["From the database"]
