"""CSV files as spreadsheet programs save them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.errors import SettingError
from pipeline.storage.csv_texts import MOST_BYTES, column_name, columns, decoded, read_content, records

KNOWN = ("name", "mark", "note")


def read(text: str) -> list[tuple[int, list[str]]]:
    return [(record.line, list(record.cells)) for record in records("back.csv", text, KNOWN, "a sheet")]


@pytest.mark.parametrize(
    "content",
    [
        b"name,mark\r\nAda,3\r\n",
        b"\xef\xbb\xbfname;mark\nAda;3",
        b"sep=;\r\nname;mark\r\nAda;3\r\n",
        b'\n"name"\t"mark"\nAda\t3\n\n\t\n',
        "name\tmark\nAda\t3\n".encode("utf-16"),
        "sep=;\r\nname;mark\r\nAda;3\r\n".encode("utf-16"),
        "\ufeffname,mark\nAda,3\n".encode("utf-16-be"),
    ],
    ids=["plain", "mark", "told", "blank lines", "UTF-16", "told in UTF-16", "UTF-16, other end first"],
)
def test_whatever_a_program_saves_has_the_same_records(content: bytes) -> None:
    assert [cells for _, cells in read(decoded("back.csv", content))] == [["name", "mark"], ["Ada", "3"]]


def test_a_record_knows_the_line_on_which_it_begins() -> None:
    text = 'sep=,\r\nname,note\r\nAda,"one\r\ntwo"\r\n\r\nBen,three\r\n'
    assert read(text) == [(2, ["name", "note"]), (3, ["Ada", "one\r\ntwo"]), (6, ["Ben", "three"])]


def test_a_delimiter_that_stands_in_the_name_of_a_strange_column_is_not_taken_for_one() -> None:
    assert read('name;"mine, really, all of it";mark\nAda;;3\n')[1] == (2, ["Ada", "", "3"])


def test_cells_go_by_their_columns_and_what_is_in_none_is_kept_apart() -> None:
    head, short, long = records("back.csv", "name,,mark\nAda\nBen,x,2,y\n", KNOWN, "a sheet")
    assert short.by_column([*head.cells]) == {"name": "Ada", "": "", "mark": ""}
    assert long.by_column([*head.cells]) == {"name": "Ben", "": "xy", "mark": "2"}


def test_names_of_columns_are_those_of_the_code() -> None:
    assert [column_name(each) for each in (" Question ID ", "'NAME'", "in_two  words", "")] == [
        "question_id", "name", "in_two_words", "",
    ]  # fmt: skip


def test_columns_that_are_needed_unknown_or_there_twice_are_told() -> None:
    head = records("back.csv", "Name,Mark,colour\n", KNOWN, "a sheet")[0]
    names, notes = columns("back.csv", head, ("name",), KNOWN)
    assert names == ["name", "mark", "colour"]
    assert notes == ["back.csv: column colour is not known, and was not read"]
    with pytest.raises(SettingError, match=r"back\.csv line 1: no column note among name, mark, colour: name"):
        columns("back.csv", head, ("name", "note"), KNOWN)
    with pytest.raises(SettingError, match=r"column mark is there twice"):
        columns("back.csv", records("back.csv", "name,mark,MARK\n", KNOWN, "a sheet")[0], (), KNOWN)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "is empty: give a sheet"),
        (b" \n,,\n", "is empty"),
        (b"name,mark\nAd\xe9,3\n", r"is not UTF-8 text \(invalid continuation byte, byte 12\)"),
        (b"\xff\xfen\x00a", "is not UTF-8 text"),
        (b'name,mark\n"Ada"x,3\n', r"is no CSV from line 2: .* put quotes around cells"),
        (b'name,mark\nAda,"3\n', "is no CSV from line 2: unexpected end of data"),
        (b"name,mark\n" + b"a" * 200_000 + b",3\n", "is no CSV from line 2: field larger than field limit"),
    ],
)
def test_what_is_no_sheet_is_refused_by_name(content: bytes, told: str) -> None:
    with pytest.raises(SettingError, match=rf"^back\.csv {told}"):
        read(decoded("back.csv", content))


def test_a_file_that_cannot_be_read_or_is_too_large_says_what_should_be_given(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"nowhere\.csv cannot be read \(No such file.*: give a sheet"):
        read_content(tmp_path / "nowhere.csv", "a sheet")
    with pytest.raises(SettingError, match=r"cannot be read .*: give a sheet"):
        read_content(tmp_path, "a sheet")
    large = tmp_path / "large.csv"
    with large.open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    with pytest.raises(SettingError, match=r"large\.csv has over 20,000,000 bytes: give a sheet"):
        read_content(large, "a sheet")
