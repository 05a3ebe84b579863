"""The files of a dump: lines, months, and what is damaged."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.corpus.parse.paper import PageError
from pipeline.errors import MissingInput, PermanentFailure, SettingError
from pipeline.wikipedia import dump as dumps
from pipeline.wikipedia.dump import Line, open_dump, read_page
from tests.unit.wikipedia.pages import FILE, MONTH, lantern, orchard, write_dump


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


def test_a_missing_file_and_two_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(MissingInput, match="nowhere"):
        open_dump([tmp_path / "nowhere.tar.gz"])
    with pytest.raises(SettingError, match="a name of its own"):
        open_dump([write_dump(tmp_path / folder, [orchard()]) for folder in ("a", "b")])


def flip_checksum(whole: bytes) -> bytes:
    return whole[:-8] + bytes([whole[-8] ^ 1]) + whole[-7:]


DAMAGES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    **{
        f"{share:.0%} of it": (
            lambda whole, share=share: whole[: int(len(whole) * share)],
            "breaks off.*fetch it again",
        )
        for share in (0.3, 0.6, 0.95)
    },
    "broken off before it was packed": (
        lambda whole: gzip.compress(gzip.decompress(whole)[: len(gzip.decompress(whole)) // 2]),
        "breaks off",
    ),
    "a changed byte behind the last line": (flip_checksum, "CRC"),
    "empty": (lambda _: b"", ""),
    "text": (lambda _: b"no archive at all", ""),
    "gzip": (lambda _: gzip.compress(b"no archive within"), ""),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_archive_is_named(tmp_path: Path, name: str) -> None:
    damage, why = DAMAGES[name]
    file = write_dump(tmp_path, [orchard(), lantern()] * 20)
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(PermanentFailure, match=f"{FILE}.*{why}"):
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
    page = read_page(Line(FILE, 1, json.dumps(orchard(is_part_of={"identifier": "zh_yuewiki"})).encode()))
    assert (page.page_id, page.category) == ("zh_yuewiki:101", "wikipedia.zh-yue")


IDENTITY = {"name": "x", "identifier": 1, "is_part_of": {"identifier": "enwiki"}, "version": {"identifier": 1}}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        *((content, "broken_line") for content in (None, b"{", b"[1]", b'{"name": "x"}', b"\xff\xfe", b"[" * 100_000)),
        (IDENTITY | {"identifier": -1}, "broken_line"),
        (IDENTITY | {"is_part_of": {"identifier": "enwiktionary"}}, "not_wikipedia"),
        (IDENTITY | {"is_part_of": {"identifier": "commonswiki"}}, "not_wikipedia"),
        (IDENTITY | {"namespace": {"identifier": 14}}, "not_an_article"),
    ],
)
def test_a_line_that_is_no_article_of_wikipedia_has_its_reason(
    content: bytes | dict[str, object] | None, reason: str
) -> None:
    line = json.dumps(content).encode() if isinstance(content, dict) else content
    with pytest.raises(PageError) as caught:
        read_page(Line(FILE, 1, line))
    assert caught.value.reason == reason
