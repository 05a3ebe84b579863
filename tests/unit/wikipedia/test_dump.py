"""The files of a dump: lines, months, and what is damaged."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from pipeline.corpus.parse.paper import PageError
from pipeline.errors import MissingInput, PermanentFailure, SettingError
from pipeline.wikipedia import dump as dumps
from pipeline.wikipedia.dump import Line, open_dump
from pipeline.wikipedia.page import read_page
from tests.unit.wikipedia.pages import FILE, MONTH, lantern, orchard, write_dump


def reason_of(content: bytes | None) -> str:
    with pytest.raises(PageError) as error:
        read_page(Line(FILE, 1, content))
    return error.value.reason


def test_lines_of_all_members_come_in_order(tmp_path: Path) -> None:
    file = write_dump(tmp_path, [orchard(), b""], [lantern()])
    lines = list(open_dump([file]).lines())
    assert [(line.number, read_page(line).page_id) for line in lines] == [(1, "enwiki:101"), (2, "enwiki:202")]
    assert lines[1].place == f"{FILE} line 2"


def test_files_are_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    second = write_dump(tmp_path / "here", [lantern()], name="simplewiki-NS0-20240901.json.tar.gz")
    first = write_dump(tmp_path, [orchard()])
    assert [line.file for line in open_dump([second, first]).lines()] == [first.name, second.name]


def test_the_month_is_that_of_the_files_names_or_the_one_given(tmp_path: Path) -> None:
    file, plain = write_dump(tmp_path, [orchard()]), write_dump(tmp_path, [orchard()], name="sample.json.tar.gz")
    assert open_dump([file]).month == MONTH
    assert open_dump([plain], "2023-05").month == "2023-05"
    with pytest.raises(SettingError, match="--month"):
        open_dump([plain])
    with pytest.raises(SettingError, match="2024-09, 2024-10"):
        open_dump([file, write_dump(tmp_path, [orchard()], name="dewiki-NS0-20241001.json.tar.gz")])


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingInput, match="nowhere"):
        open_dump([tmp_path / "nowhere.tar.gz"])


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    files = [write_dump(tmp_path / each, [orchard()]) for each in ("a", "b")]
    with pytest.raises(SettingError, match="a name of its own"):
        open_dump(files)


@pytest.mark.parametrize("kept", [0.3, 0.6, 0.95])
def test_an_archive_that_breaks_off_is_named(tmp_path: Path, kept: float) -> None:
    file = write_dump(tmp_path, [orchard(), lantern()] * 20)
    whole = file.read_bytes()
    file.write_bytes(whole[: int(len(whole) * kept)])
    with pytest.raises(PermanentFailure, match=rf"{FILE} breaks off.*fetch it again"):
        list(open_dump([file]).lines())


def test_an_archive_that_breaks_off_before_it_was_packed_is_named(tmp_path: Path) -> None:
    file = write_dump(tmp_path, [orchard(), lantern()] * 20)
    whole = gzip.decompress(file.read_bytes())
    file.write_bytes(gzip.compress(whole[: len(whole) // 2]))
    with pytest.raises(PermanentFailure, match="breaks off"):
        list(open_dump([file]).lines())


def test_a_changed_byte_behind_the_last_line_is_found(tmp_path: Path) -> None:
    file = write_dump(tmp_path, [orchard()])
    whole = bytearray(file.read_bytes())
    whole[-8] ^= 1  # of the checksum
    file.write_bytes(whole)
    with pytest.raises(PermanentFailure, match=f"{FILE}.*CRC"):
        list(open_dump([file]).lines())


@pytest.mark.parametrize(
    "content", [b"", b"no archive at all", gzip.compress(b"no archive within")], ids=["empty", "text", "gzip"]
)
def test_what_is_no_archive_is_named(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / FILE
    file.write_bytes(content)
    with pytest.raises(PermanentFailure, match=FILE):
        list(open_dump([file]).lines())


def test_an_empty_archive_is_no_dump(tmp_path: Path) -> None:
    with pytest.raises(PermanentFailure, match="holds no line"):
        list(open_dump([write_dump(tmp_path, [])]).lines())


def test_a_line_longer_than_any_page_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dumps, "LONGEST_LINE", 20_000)
    file = write_dump(tmp_path, [b"x" * 50_000, orchard(), b"y" * 20_000, lantern()])
    found = [line.content is None for line in open_dump([file]).lines()]
    assert found == [True, False, True, False]


def test_lines_go_out_in_chunks_of_bounded_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dumps, "CHUNK_BYTES", 12_000)
    file = write_dump(tmp_path, [orchard(), lantern()] * 10)
    chunks = list(open_dump([file]).chunks())
    assert len(chunks) > 3
    assert [line.number for chunk in chunks for line in chunk] == list(range(1, 21))


def test_a_page_tells_who_it_is() -> None:
    import json

    page = read_page(Line(FILE, 1, json.dumps(orchard(is_part_of={"identifier": "zh_yuewiki"})).encode()))
    assert (page.page_id, page.category) == ("zh_yuewiki:101", "wikipedia.zh-yue")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "broken_line"),
        (b"{", "broken_line"),
        (b"[1]", "broken_line"),
        (b'{"name": "x"}', "broken_line"),
        (b"\xff\xfe", "broken_line"),
        (b"[" * 100_000, "broken_line"),
        (b'{"name": "x", "identifier": -1, "is_part_of": {"identifier": "enwiki"}, "version": {"identifier": 1}}',
         "broken_line"),
        (b'{"name": "x", "identifier": 1, "is_part_of": {"identifier": "enwiktionary"}, "version": {"identifier": 1}}',
         "not_wikipedia"),
        (b'{"name": "x", "identifier": 1, "is_part_of": {"identifier": "commonswiki"}, "version": {"identifier": 1}}',
         "not_wikipedia"),
        (b'{"name": "x", "identifier": 1, "is_part_of": {"identifier": "enwiki"}, "version": {"identifier": 1}, '
         b'"namespace": {"identifier": 14}}', "not_an_article"),
    ],
)  # fmt: skip
def test_a_line_that_is_no_article_of_wikipedia_has_its_reason(content: bytes | None, reason: str) -> None:
    assert reason_of(content) == reason
