"""Ratings that come back: what is right is imported, what is wrong is named and costs nothing
else.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.engine.locks import month_lock
from pipeline.engine.stage import Workspace
from pipeline.errors import SettingError
from pipeline.evaluation.annotation.export import Export, write_files
from pipeline.evaluation.annotation.importer import import_files, read_sheet, read_status
from pipeline.storage.csv_reader import MOST_BYTES
from pipeline.storage.provenance import read_provenance
from pipeline.tables import CRITERIA, HUMAN_RATINGS
from tests.unit.evaluation.annotation.studied import (
    MONTH,
    SYSTEMS,
    as_csv,
    exported,
    filled,
    imported,
    kept,
    refused,
    sent_back,
    workspace,
    write_month,
)

pytestmark = pytest.mark.slow

LINES = 4 * len(SYSTEMS)


@pytest.fixture
def work(tmp_path: Path) -> Workspace:
    """A workspace with one month."""
    work = workspace(tmp_path / "data")
    write_month(work.root)
    return work


@pytest.fixture
def study(work: Workspace) -> Export:
    """A study of that month."""
    return exported(work.root)


def test_labels_become_the_systems_of_the_key(
    work: Workspace, study: Export, tmp_path: Path
) -> None:
    comment = "so, so; “fine”\nand =long"
    sheet = imported(
        work, sent_back(tmp_path, filled(study, "Bjørn Ö.", fluency="2", comment=comment))
    )
    rows = kept(work.root)
    keys = {(unit.item_id, unit.label): unit.system for unit in study.study.units.values()}
    assert (sheet.study, sheet.annotator, sheet.rows, sheet.replaced) == (
        "pilot",
        "Bjørn Ö.",
        LINES,
        0,
    )
    assert (len(rows), {row["rater"] for row in rows}) == (LINES, {"Bjørn Ö."})
    assert all(row["system"] == keys[row["task_id"], row["label"]] for row in rows)
    assert all(row["preferred"] == row["label"].endswith("-A") for row in rows)
    first = next(row for row in rows if row["comment"])
    assert (first["fluency"], first["coherence"], first["comment"], first["label"]) == (
        2,
        4,
        comment,
        "T01-A",
    )


def test_columns_may_be_moved_and_added_and_lines_may_be_empty(
    work: Workspace, study: Export, tmp_path: Path
) -> None:
    rows = [{"Notes": "mine", **dict(reversed(row.items()))} for row in filled(study, "Ada")]
    file = tmp_path / "ratings.csv"
    file.write_bytes(f"{as_csv(rows)}\r\n,,,\r\n\r\n".encode("utf-8-sig"))
    assert imported(work, file).rows == LINES
    assert all(row[criterion] == 4 for row in kept(work.root) for criterion in CRITERIA)


def test_marks_and_choices_are_read_as_people_write_them(
    work: Workspace, study: Export, tmp_path: Path
) -> None:
    marks, choices = ("3", " 3 ", "3.0"), (" X ", "", "No")
    changes = [
        {"fluency": mark, "preferred": choice} for mark, choice in zip(marks, choices, strict=True)
    ]
    rows = [row | change for row, change in zip(filled(study, "Ada"), changes, strict=False)]
    imported(work, sent_back(tmp_path, rows))
    assert [(row["fluency"], row["preferred"]) for row in kept(work.root)] == [
        (3, True),
        (3, False),
        (3, False),
    ]


def test_the_name_on_one_line_is_that_of_all_and_the_option_overrides_any(
    work: Workspace, study: Export, tmp_path: Path
) -> None:
    file = sent_back(tmp_path, filled(study, ""))
    assert "column annotator is empty: fill it in or give --annotator" in refused(work, file)
    (sheet,) = import_files(work, [file], annotator=" ")
    assert sheet.faults == ["--annotator is empty: give the annotator's name"]
    imported(work, file, annotator="Ada Byron")
    for named, override in (
        (filled(study, "", annotator=" Ada  Byron "), None),
        (filled(study, "x"), "ada byron"),
    ):
        sheet = imported(work, sent_back(tmp_path, named), annotator=override)
        assert (sheet.annotator, sheet.replaced) == ("Ada Byron", LINES)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"fluency": "6"},
            "line 2, column fluency: '6': write a whole number from 1 to 5, or leave it empty",
        ),
        ({"fluency": "0"}, "line 2, column fluency: '0'"),
        ({"fluency": "3.5"}, "line 2, column fluency: '3.5'"),
        ({"coherence": "٤"}, "line 2, column coherence: '٤'"),
        ({"preferred": "maybe"}, "line 2, column preferred: 'maybe': write x for the best section"),
        (
            {"unit": "T99-A"},
            "line 2, column unit: 'T99-A': keep the units of the sheet, such as T01-A",
        ),
        ({"unit": ""}, "line 2, column unit: ''"),
        ({"unit": "t01-b"}, "line 3, column unit: T01-B is on line 2 too: leave one line"),
        ({"comment": "one\ntwo\nthree", "fluency": "7"}, "line 2, column fluency"),
        ({"fluency": "7", "coherence": "good"}, "column coherence: 'good'"),
    ],
)
def test_a_line_that_is_wrong_is_named_and_costs_no_other_line(
    work: Workspace, study: Export, tmp_path: Path, changes: dict[str, str], told: str
) -> None:
    first, *others = filled(study, "Ada")
    (sheet,) = import_files(work, [sent_back(tmp_path, [first | changes, *others])])
    assert (sheet.rows, len(sheet.faults)) == (LINES - 1, 1)
    assert told in sheet.faults[0]


def test_a_line_with_more_cells_than_columns_is_wrong(
    work: Workspace, study: Export, tmp_path: Path
) -> None:
    file = tmp_path / "ratings.csv"
    file.write_text(as_csv(filled(study, "Ada")).replace("A title", "A title,5", 1))
    (sheet,) = import_files(work, [file])
    assert (sheet.rows, sheet.faults) == (
        LINES - 1,
        ["line 2, more cells than columns: put quotes around the comment"],
    )


def test_a_corrected_sheet_replaces_the_earlier_one_and_its_wrong_lines_lose_nothing(
    work: Workspace, study: Export, tmp_path: Path
) -> None:
    imported(work, sent_back(tmp_path, filled(study, "Ada")))
    first, second, third, *others = filled(study, "ADA")
    changed = [
        first | {"fluency": "five"},
        second | {"fluency": "1"},
        third | {"unit": "T1-C"},
        *others,
    ]
    (sheet,) = import_files(work, [sent_back(tmp_path, changed)])
    rows = {row["label"]: row for row in kept(work.root)}
    assert (sheet.rows, sheet.replaced, len(sheet.faults), len(rows)) == (
        LINES - 2,
        LINES - 2,
        2,
        LINES,
    )
    assert [rows[f"T01-{letter}"]["fluency"] for letter in "ABC"] == [4, 1, 4]
    imported(work, sent_back(tmp_path, [first | {"fluency": "5"}, second, third]))
    rows = {row["label"]: row for row in kept(work.root)}
    assert [rows[f"T01-{letter}"]["fluency"] for letter in "ABC"] == [5, 4, 4]
    assert {row["rater"] for row in rows.values()} == {"Ada"}


def test_of_two_sections_that_are_preferred_none_is_and_their_marks_stay(
    work: Workspace, study: Export, tmp_path: Path
) -> None:
    first, second, *others = filled(study, "Ada")
    (sheet,) = import_files(
        work, [sent_back(tmp_path, [first, second | {"preferred": "x"}, *others])]
    )
    assert sheet.faults == [
        "line 2 and line 3, column preferred: marked more than once in T01: leave one"
    ]
    rows = kept(work.root)
    assert len(rows) == LINES
    assert {row["preferred"] for row in rows if row["label"].startswith("T01")} == {None}


def test_one_section_of_a_task_is_preferred_when_the_line_of_the_earlier_choice_is_wrong(
    work: Workspace, study: Export, tmp_path: Path
) -> None:
    imported(work, sent_back(tmp_path, filled(study, "Ada")))
    first, second, *others = filled(study, "Ada", preferred="", fluency="many")
    import_files(work, [sent_back(tmp_path, [first, second | {"preferred": "x"}, *others])])
    chosen = [row["label"] for row in kept(work.root) if row["preferred"]]
    assert [label for label in chosen if label.startswith("T01")] == ["T01-B"]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "no column study, annotator, unit"),
        (b"study,annotator,unit\r\n", "no line below its columns"),
        (b"study,annotator,unit\r\npilot,Ada,T01-A\r\n", "no column consistency"),
        (b"study,annotator,fluency\r\npilot,Ada,3\r\n", "line 1: no column unit in"),
        (b"study;annotator;unit\r\npilot;Ada;T01-A\r\n", "save it as CSV UTF-8, comma-separated"),
        (
            b'{"study": "pilot", "annotator": "Ada"}',
            "it is JSON, as forms of earlier versions gave: run citeloom annotate export again",
        ),
        (b"PK\x03\x04\x00\x00\xff", "line 1: it is not UTF-8"),
        ("study,annotator,unit\r\n".encode("utf-16"), "line 1: it is not UTF-8"),
        (b'study,annotator,unit\r\npilot,"Ada', "line 2: it is not CSV (unexpected end of data)"),
        (
            b"study,annotator,unit\r\npilot,Ada,T01-A\r\nother,,T01-B\r\n",
            "'pilot' on line 2 and 'other' on line 3",
        ),
        (
            b"study,annotator,unit\r\npilot,Ada,T01-A\r\n,Ben,T01-B\r\n",
            "'Ada' on line 2 and 'Ben' on line 3",
        ),
        (b"study,annotator,unit\r\n,Ada,T01-A\r\n", "column study is empty"),
        (b"study,annotator,unit\r\npilot,a\x07b,T01-A\r\n", "annotator is 'a\\x07b'"),
        (
            b"study,annotator,unit\r\npilot," + b"x" * 101 + b",T01-A\r\n",
            "100 printable characters at most",
        ),
        (b"study,annotator,unit\r\n../../etc,Ada,T01-A\r\n", "no study '../../etc'"),
        pytest.param(b" " * (MOST_BYTES + 1), "it has over 20,000,000 bytes", id="too large"),
    ],
)
def test_a_file_that_is_no_sheet_is_refused_and_costs_no_other_file(
    work: Workspace, study: Export, tmp_path: Path, content: bytes, told: str
) -> None:
    file = tmp_path / "strange"
    file.write_bytes(content)
    assert told in refused(work, file)
    strange, good = import_files(work, [file, sent_back(tmp_path, filled(study, "Ada"))])
    assert (strange.file, strange.rows, good.rows, good.faults) == (str(file), 0, LINES, [])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(
    content=st.binary(max_size=200)
    | st.text(alphabet='unit,label\n\r";\t{}[]=\0é', max_size=80).map(str.encode)
)
def test_no_bytes_at_all_raise_anything_but_a_message(
    work: Workspace, study: Export, tmp_path: Path, content: bytes
) -> None:
    file = tmp_path / "strange"
    file.write_bytes(content)
    with pytest.raises(SettingError):
        read_sheet(work.root, file, annotator="Ada")


def test_half_filled_lines_are_imported_with_null_in_place_of_marks(
    work: Workspace, study: Export, tmp_path: Path
) -> None:
    rows = filled(study, "Ada")
    for row in rows[1:3]:
        row.update(dict.fromkeys(CRITERIA, ""))
    rows[0].update(fluency="", preferred="")
    rows[2]["comment"] = "I cannot tell."
    sheet = imported(work, sent_back(tmp_path, rows))
    found = {row["label"]: row for row in kept(work.root) if row["label"].startswith("T01")}
    assert set(found) == {"T01-A", "T01-C"}, "a line without any entry is left out"
    assert [found["T01-A"][name] for name in ("fluency", "coherence")] == [None, 4]
    assert [found["T01-C"][criterion] for criterion in CRITERIA] == [None] * 6
    assert [row["preferred"] for row in found.values()] == [None] * 2
    assert (sheet.filled, sheet.cells) == (6 * LINES - 13, 6 * LINES)
    only_preferred = [row | dict.fromkeys(CRITERIA, "") for row in filled(study, "Ben")]
    imported(work, sent_back(tmp_path, only_preferred[:3]))
    assert [row["preferred"] for row in kept(work.root) if row["rater"] == "Ben"] == [
        True,
        False,
        False,
    ]


def test_the_sheet_as_it_was_given_out_has_no_entry(
    work: Workspace, study: Export, tmp_path: Path
) -> None:
    _, sheet = write_files(study, tmp_path, 1)
    assert refused(work, sheet) == "no line of it has an entry"


def test_importing_twice_changes_no_byte_and_of_two_files_of_one_rater_the_later_one_counts(
    work: Workspace, study: Export, tmp_path: Path
) -> None:
    file = sent_back(tmp_path, filled(study, "Ada"))
    imported(work, file)
    before = work.root.file(HUMAN_RATINGS, MONTH).read_bytes()
    assert imported(work, file).replaced == LINES
    assert work.root.file(HUMAN_RATINGS, MONTH).read_bytes() == before
    later = sent_back(
        tmp_path, [row | {"fluency": "1"} for row in filled(study, "Ada")], "later.csv"
    )
    import_files(work, [file, later])
    assert {row["fluency"] for row in kept(work.root)} == {1}


def test_one_by_one_or_together_in_any_order_the_rows_are_the_same(
    work: Workspace, study: Export, tmp_path: Path
) -> None:
    files = [
        sent_back(tmp_path, filled(study, rater), f"{rater}.csv")
        for rater in ("Ada", "Ben", "Cleo")
    ]
    import_files(work, files)
    together = kept(work.root)
    provenance = read_provenance(work.root.file(HUMAN_RATINGS, MONTH))
    assert provenance is not None
    assert (len(together), provenance.rows, len(provenance.inputs)) == (3 * LINES, 3 * LINES, 3)
    work.root.file(HUMAN_RATINGS, MONTH).unlink()
    for file in reversed(files):
        imported(work, file)
    assert kept(work.root) == together


def test_the_same_rater_again_replaces_that_task_and_no_other(
    work: Workspace, study: Export, tmp_path: Path
) -> None:
    for rater in ("Ada", "Ben"):
        imported(work, sent_back(tmp_path, filled(study, rater)))
    again = [row | {"fluency": "1"} for row in filled(study, "ADA")[:3]]
    again[2] |= {**dict.fromkeys(CRITERIA, ""), "fluency": ""}
    again[0]["preferred"] = ""
    assert imported(work, sent_back(tmp_path, again)).replaced == 3
    rows = kept(work.root)
    assert len(rows) == 2 * LINES - 1, "a line that is empty now is taken back"
    changed = [(row["rater"], row["task_id"]) for row in rows if row["fluency"] == 1]
    assert changed == [("Ada", study.study.units["T01-A"].item_id)] * 2


def test_months_go_to_files_of_their_own_in_which_studies_lie_beside_each_other(
    work: Workspace, study: Export, tmp_path: Path
) -> None:
    write_month(work.root, "2024-04", tasks=2)
    both = exported(work.root, "second", seed=3)
    imported(work, sent_back(tmp_path, filled(both, "Ada"), "2.csv"))
    imported(work, sent_back(tmp_path, filled(study, "Ada"), "1.csv"))
    assert [row["study"] for row in kept(work.root)] == ["pilot"] * LINES + ["second"] * LINES
    assert [row["study"] for row in kept(work.root, "2024-04")] == ["second"] * 2 * len(SYSTEMS)


def test_the_status_says_how_much_each_annotator_filled_in(
    work: Workspace, study: Export, tmp_path: Path
) -> None:
    (before,) = read_status(work.root)
    assert (before.study, before.kind, before.items, before.units, before.filled) == (
        "pilot",
        "ratings",
        4,
        LINES,
        {},
    )
    imported(work, sent_back(tmp_path, filled(study, "Ada", fluency="", comment="Good.")))
    (after,) = read_status(work.root)
    assert (after.filled, after.cells) == ({"Ada": 6 * LINES - 1}, 6 * LINES)


def test_an_import_waits_while_another_one_runs(
    work: Workspace, study: Export, tmp_path: Path
) -> None:
    file = sent_back(tmp_path, filled(study, "Ada"))
    with ThreadPoolExecutor(1) as executor:
        with month_lock(work, "annotations", "all"):
            waiting = executor.submit(imported, work, file)
            with pytest.raises(TimeoutError):
                waiting.result(0.3)
            assert not work.root.file(HUMAN_RATINGS, MONTH).exists()
        assert waiting.result(30).rows == LINES
