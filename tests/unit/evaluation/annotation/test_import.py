"""Ratings that come back: what is right is imported, what is wrong is named and costs nothing
else.
"""

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.engine.locks import month_lock
from pipeline.errors import SettingError
from pipeline.evaluation.annotation.export import write_files
from pipeline.evaluation.annotation.importer import import_files, read_sheet, read_status
from pipeline.storage.csv_reader import MOST_BYTES
from pipeline.storage.provenance import read_provenance
from pipeline.tables import CRITERIA, HUMAN_RATINGS
from tests.processes import PATIENCE
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
HEAD = b"study,annotator,unit\r\n"
EMPTY = dict.fromkeys(CRITERIA, "")


@pytest.fixture
def work(tmp_path):
    """A workspace with one month."""
    work = workspace(tmp_path / "data")
    write_month(work.root)
    return work


@pytest.fixture
def study(work):
    """A study of that month."""
    return exported(work.root)


def test_labels_become_the_systems_of_the_key(work, study, tmp_path):
    comment = "so, so; “fine”\nand =long"
    rows = filled(study, "Bjørn Ö.", fluency="2", comment=comment)
    sheet = imported(work, sent_back(tmp_path, rows))
    assert (sheet.study, sheet.annotator, sheet.rows, sheet.replaced) == (
        "pilot",
        "Bjørn Ö.",
        LINES,
        0,
    )
    rows = kept(work.root)
    keys = {(unit.item_id, unit.label): unit.system for unit in study.study.units.values()}
    assert all(row["system"] == keys[row["task_id"], row["label"]] for row in rows)
    assert all(row["preferred"] == row["label"].endswith("-A") for row in rows)
    (first,) = [row for row in rows if row["comment"]]
    assert [first[name] for name in ("rater", "label", "fluency", "coherence", "comment")] == [
        "Bjørn Ö.",
        "T01-A",
        2,
        4,
        comment,
    ]


def test_columns_may_be_moved_and_added_and_marks_are_read_as_people_write_them(
    work, study, tmp_path
):
    written = [("3", " X "), (" 3 ", ""), ("3.0", "No")]
    changes = [{"fluency": mark, "preferred": choice} for mark, choice in written]
    lines = [row | change for row, change in zip(filled(study, "Ada"), changes, strict=False)]
    rows = [{"Notes": "mine", **dict(reversed(row.items()))} for row in lines]
    file = tmp_path / "ratings.csv"
    file.write_bytes(f"{as_csv(rows)}\r\n,,,\r\n\r\n".encode("utf-8-sig"))
    imported(work, file)
    assert [(row["fluency"], row["coherence"], row["preferred"]) for row in kept(work.root)] == [
        (3, 4, True),
        (3, 4, False),
        (3, 4, False),
    ]


def test_the_name_on_one_line_is_that_of_all_and_the_option_overrides_any(work, study, tmp_path):
    file = sent_back(tmp_path, filled(study, ""))
    assert "column annotator is empty: fill it in or give --annotator" in refused(work, file)
    assert "--annotator is empty" in refused(work, file, annotator=" ")
    imported(work, file, annotator="Ada Byron")
    for rows, override in (
        (filled(study, "", annotator=" Ada  Byron "), None),
        (filled(study, "x"), "ada byron"),
    ):
        sheet = imported(work, sent_back(tmp_path, rows), annotator=override)
        assert (sheet.annotator, sheet.replaced) == ("Ada Byron", LINES)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"fluency": "6"},
            "line 2, column fluency: '6': write a whole number from 1 to 5, or leave it empty",
        ),
        ({"fluency": "3.5"}, "line 2, column fluency: '3.5'"),
        ({"coherence": "٤"}, "line 2, column coherence: '٤'"),
        ({"preferred": "maybe"}, "line 2, column preferred: 'maybe': write x for the best section"),
        ({"unit": "T99-A"}, "line 2, column unit: 'T99-A': keep the units of the sheet, such as"),
        ({"unit": "t01-b"}, "line 3, column unit: T01-B is on line 2 too: leave one line"),
        ({"comment": "one\ntwo", "fluency": "7", "coherence": "good"}, "column coherence: 'good'"),
        ({"": "5"}, "line 2, more cells than columns: put quotes around the comment"),
    ],
)
def test_a_line_that_is_wrong_is_named_and_costs_no_other_line(
    work, study, tmp_path, changes, message
):
    first, *others = filled(study, "Ada")
    (sheet,) = import_files(work, [sent_back(tmp_path, [first | changes, *others])])
    assert (sheet.rows, len(sheet.faults)) == (LINES - 1, 1)
    assert message in sheet.faults[0]


def test_a_corrected_sheet_replaces_the_earlier_one_and_its_wrong_lines_lose_nothing(
    work, study, tmp_path
):
    def marks_of_the_first():
        rows = {row["label"]: row for row in kept(work.root)}
        assert (len(rows), {row["rater"] for row in rows.values()}) == (LINES, {"Ada"})
        return [rows[f"T01-{letter}"]["fluency"] for letter in "ABC"]

    imported(work, sent_back(tmp_path, filled(study, "Ada")))
    first, second, third, *others = filled(study, "ADA")
    changed = [first | {"fluency": "five"}, second | {"fluency": "1"}, third | {"unit": "T1-C"}]
    (sheet,) = import_files(work, [sent_back(tmp_path, [*changed, *others])])
    assert (sheet.rows, sheet.replaced, len(sheet.faults)) == (LINES - 2, LINES - 2, 2)
    assert marks_of_the_first() == [4, 1, 4]
    imported(work, sent_back(tmp_path, [first | {"fluency": "5"}, second, third]))
    assert marks_of_the_first() == [5, 4, 4]
    imported(work, sent_back(tmp_path, [first | {"preferred": ""}, second, third | EMPTY]))
    assert len(kept(work.root)) == LINES - 1, "a line that is empty now is taken back"


def test_of_two_sections_that_are_preferred_none_is_and_their_marks_stay(work, study, tmp_path):
    first, second, *others = filled(study, "Ada")
    rows = [first, second | {"preferred": "x"}, *others]
    (sheet,) = import_files(work, [sent_back(tmp_path, rows)])
    assert sheet.faults == [
        "line 2 and line 3, column preferred: marked more than once in T01: leave one"
    ]
    assert len(kept(work.root)) == LINES
    assert {row["preferred"] for row in kept(work.root) if row["label"].startswith("T01")} == {None}


def test_one_section_of_a_task_is_preferred_when_the_line_of_the_earlier_choice_is_wrong(
    work, study, tmp_path
):
    imported(work, sent_back(tmp_path, filled(study, "Ada")))
    first, second, *others = filled(study, "Ada", preferred="", fluency="many")
    import_files(work, [sent_back(tmp_path, [first, second | {"preferred": "x"}, *others])])
    best = [row["label"] for row in kept(work.root) if row["preferred"]]
    assert [label for label in best if label.startswith("T01")] == ["T01-B"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no column study, annotator, unit"),
        (HEAD, "no line below its columns"),
        (HEAD + b"pilot,Ada,T01-A\r\n", "no column consistency"),
        (HEAD + b"pilot,Ada,A\r\nother,,B\r\n", "'pilot' on line 2 and 'other' on line 3"),
        (HEAD + b",Ada,T01-A\r\n", "column study is empty"),
        (HEAD + b"pilot,a\x07b,T01-A\r\n", "annotator is 'a\\x07b'"),
        (HEAD + b"pilot," + b"x" * 101 + b",T01-A\r\n", "100 printable characters at most"),
        (HEAD + b"../../etc,Ada,T01-A\r\n", "no study '../../etc'"),
        pytest.param(b" " * (MOST_BYTES + 1), "it has over 20,000,000 bytes", id="too large"),
    ],
)
def test_a_file_that_is_no_sheet_is_refused_and_costs_no_other_file(
    work, study, tmp_path, content, message
):
    file = tmp_path / "strange"
    file.write_bytes(content)
    assert message in refused(work, file)
    strange, good = import_files(work, [file, sent_back(tmp_path, filled(study, "Ada"))])
    assert (strange.file, strange.rows, good.rows, good.faults) == (str(file), 0, LINES, [])


def test_a_file_that_cannot_be_read_and_a_sheet_as_it_was_given_out_are_refused(
    work, study, tmp_path
):
    assert "it cannot be read" in refused(work, tmp_path / "nowhere.csv")
    _, sheet = write_files(study, tmp_path, 1)
    assert refused(work, sheet) == "no line of it has an entry"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(
    content=st.binary(max_size=200)
    | st.text(alphabet='unit,label\n\r";\t{}[]=\0é', max_size=80).map(str.encode)
)
def test_no_bytes_at_all_raise_anything_but_a_message(work, study, tmp_path, content):
    file = tmp_path / "strange"
    file.write_bytes(content)
    with pytest.raises(SettingError):
        read_sheet(work.root, file, annotator="Ada")


def test_half_filled_lines_are_imported_with_null_in_place_of_marks(work, study, tmp_path):
    first, second, third, *others = filled(study, "Ada", fluency="", preferred="")
    rows = [first, second | EMPTY, third | EMPTY | {"comment": "I cannot tell."}, *others]
    sheet = imported(work, sent_back(tmp_path, rows))
    found = {row["label"]: row for row in kept(work.root) if row["label"].startswith("T01")}
    assert set(found) == {"T01-A", "T01-C"}, "a line without any entry is left out"
    assert [found["T01-A"][name] for name in ("fluency", "coherence")] == [None, 4]
    assert [found["T01-C"][criterion] for criterion in CRITERIA] == [None] * 6
    assert [row["preferred"] for row in found.values()] == [None] * 2
    assert (sheet.filled, sheet.cells) == (6 * LINES - 13, 6 * LINES)
    (status,) = read_status(work.root)
    assert (status.filled, status.cells) == ({"Ada": 6 * LINES - 13}, 6 * LINES)
    only_preferred = [row | EMPTY for row in filled(study, "Ben")[:3]]
    imported(work, sent_back(tmp_path, only_preferred))
    of_ben = [row["preferred"] for row in kept(work.root) if row["rater"] == "Ben"]
    assert of_ben == [True, False, False]


def test_importing_again_one_by_one_or_in_another_order_gives_the_same_rows(work, study, tmp_path):
    files = [
        sent_back(tmp_path, filled(study, rater), f"{rater}.csv")
        for rater in ("Ada", "Ben", "Cleo")
    ]
    import_files(work, files)
    table = work.root.file(HUMAN_RATINGS, MONTH)
    together, content = kept(work.root), table.read_bytes()
    provenance = read_provenance(table)
    assert provenance is not None
    assert (len(together), provenance.rows, len(provenance.inputs)) == (3 * LINES, 3 * LINES, 3)
    assert imported(work, files[0]).replaced == LINES
    assert table.read_bytes() == content
    table.unlink()
    for file in reversed(files):
        imported(work, file)
    assert kept(work.root) == together


def test_months_go_to_files_of_their_own_in_which_studies_lie_beside_each_other(
    work, study, tmp_path
):
    write_month(work.root, "2024-04", tasks=2)
    both = exported(work.root, "second", seed=3)
    imported(work, sent_back(tmp_path, filled(both, "Ada"), "2.csv"))
    imported(work, sent_back(tmp_path, filled(study, "Ada"), "1.csv"))
    assert [row["study"] for row in kept(work.root)] == ["pilot"] * LINES + ["second"] * LINES
    assert [row["study"] for row in kept(work.root, "2024-04")] == ["second"] * 2 * len(SYSTEMS)
    pilot, _ = read_status(work.root)
    assert (pilot.study, pilot.kind, pilot.items, pilot.units) == ("pilot", "ratings", 4, LINES)


def test_an_import_waits_while_another_one_runs(work, study, tmp_path):
    file = sent_back(tmp_path, filled(study, "Ada"))
    with ThreadPoolExecutor(1) as executor:
        with month_lock(work, "annotations", "all"):
            waiting = executor.submit(imported, work, file)
            with pytest.raises(TimeoutError):
                waiting.result(0.3)
            assert not work.root.file(HUMAN_RATINGS, MONTH).exists()
        assert waiting.result(PATIENCE).rows == LINES
