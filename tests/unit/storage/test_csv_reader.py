"""CSV files that users give: what is read, and what is refused with its line."""

import pytest

from pipeline.errors import SettingError
from pipeline.storage.csv_reader import MOST_BYTES, parse_csv, read_content
from tests.cases import cases_beside


def test_rows_have_the_line_on_which_they_begin_and_cells_by_column():
    content = (
        b'\xef\xbb\xbfname, note\r\nAda,"one\r\ntwo"\r\n\r\n,,\r\nBen\r\nCy,three,and,more\r\n'
    )
    assert [(row.number, row.cells) for row in parse_csv(content, ["note"])] == [
        (2, {"name": "Ada", "note": "one\r\ntwo", "": ""}),
        (6, {"name": "Ben", "note": "", "": ""}),
        (7, {"name": "Cy", "note": "three", "": "andmore"}),
    ]


def test_what_stands_in_columns_without_a_name_at_the_end_is_not_lost():
    content = b",name,note,,\n1,Ada,one,,\n2,Ben,one, two,three\n"
    assert [row.cells for row in parse_csv(content, ["note"])] == [
        {"name": "Ada", "note": "one", "": ""},
        {"name": "Ben", "note": "one", "": " twothree"},
    ]


@cases_beside("content", "message")
def test_what_is_not_csv_in_utf_8_with_commas_is_refused_with_its_line(content, message):
    with pytest.raises(SettingError, match=f"^{message}"):
        parse_csv(content.encode(), ["name"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"name,mark\nAd\xe9,3\n", r"line 2: it is not UTF-8 \(invalid continuation byte\)"),
        ("name,mark\nAda,3\n".encode("utf-16"), "line 1: it is not UTF-8"),
        (b"name,mark\n" + b"a" * 200_000 + b",3\n", "line 2: it is not CSV .field larger than"),
    ],
)
def test_bytes_that_are_not_utf_8_and_long_cells_are_refused_with_their_line(content, message):
    with pytest.raises(SettingError, match=f"^{message}"):
        parse_csv(content, ["name"])


def test_a_file_that_cannot_be_read_or_is_too_large_says_what_should_be_given(tmp_path):
    with pytest.raises(SettingError, match=r"nowhere\.csv cannot be read .*: give a sheet"):
        read_content(tmp_path / "nowhere.csv", "a sheet")
    with pytest.raises(SettingError, match=r"cannot be read .*: give a sheet"):
        read_content(tmp_path, "a sheet")
    large = tmp_path / "large.csv"
    with large.open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    with pytest.raises(SettingError, match=r"large\.csv has over 20,000,000 bytes: give a sheet"):
        read_content(large, "a sheet")
