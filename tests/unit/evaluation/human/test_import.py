"""Ratings that come back: whatever a spreadsheet program made of them is read, and what is wrong is named and changes
nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.engine.stage import Workspace
from pipeline.errors import CiteloomError, MissingInput, SettingError
from pipeline.evaluation.human.choosing import Choice
from pipeline.evaluation.human.keeping import changed_since, import_ratings
from pipeline.evaluation.human.returned import read_returned
from pipeline.evaluation.human.sheets import rater_files
from pipeline.storage.provenance import read_provenance
from pipeline.tables import CRITERIA, HUMAN_RATINGS
from tests.unit.evaluation.human.studied import (
    MONTH,
    SYSTEMS,
    Row,
    as_csv,
    exported,
    filled,
    kept,
    sent_back,
    workspace,
    write_month,
)

LINES = 4 * len(SYSTEMS)


@pytest.fixture
def work(tmp_path: Path) -> Workspace:
    """A workspace with one month."""
    work = workspace(tmp_path / "data")
    write_month(work.root)
    return work


@pytest.fixture
def choice(work: Workspace) -> Choice:
    """A study of that month."""
    return exported(work.root)


def refused(work: Workspace, *files: Path, **options: Any) -> str:
    """The message with which an import is refused; nothing that was there before is changed."""
    before = {file: file.read_bytes() for file in (work.root.path / HUMAN_RATINGS.name).glob("*")}
    with pytest.raises(CiteloomError) as error:
        import_ratings(work, files, **options)
    assert {file: file.read_bytes() for file in (work.root.path / HUMAN_RATINGS.name).glob("*")} == before
    return str(error.value)


def test_letters_become_the_systems_of_the_key(work: Workspace, choice: Choice, tmp_path: Path) -> None:
    done = import_ratings(work, [sent_back(tmp_path, filled(choice, "Ada", fluency="2", comment="Good."))])
    rows = kept(work.root)
    keys = {(task.task_id, letter): each.system for task in choice.study.tasks for letter, each in task.labels.items()}
    assert (done.rows, done.tasks, done.raters, done.months) == (LINES, 4, ("Ada",), (MONTH,))
    assert len(rows) == LINES
    assert all(row["system"] == keys[row["task_id"], row["label"]] for row in rows)
    assert all(row["preferred"] == (row["label"] == "A") for row in rows)
    first = next(row for row in rows if row["comment"])
    assert (first["fluency"], first["coherence"], first["comment"], first["label"]) == (2, 4, "Good.", "A")


@pytest.mark.parametrize(
    "saved",
    [
        lambda text: text.encode(),
        lambda text: text.encode("utf-8-sig"),
        lambda text: text.encode("utf-16"),
        lambda text: text.replace("\r\n", "\n").encode(),
        lambda text: f"sep=,\r\n{text}".encode(),
        lambda text: f"{text}\r\n,,,\r\n\r\n".encode(),
        lambda text: text.replace("fluency", " Fluency ").encode(),
    ],
    ids=["as it is", "with a mark", "UTF-16", "line feeds", "told delimiter", "blank lines", "a header in capitals"],
)
def test_whatever_a_spreadsheet_program_makes_of_the_file_it_is_read(
    work: Workspace, choice: Choice, tmp_path: Path, saved: Callable[[str], bytes]
) -> None:
    file = tmp_path / "ratings.csv"
    file.write_bytes(saved(as_csv(filled(choice, "Bjørn Ö.", comment="so, so; “fine”\nand long"))))
    import_ratings(work, [file])
    rows = kept(work.root)
    assert {row["rater"] for row in rows} == {"Bjørn Ö."}
    assert [row["comment"] for row in rows if row["comment"]] == ["so, so; “fine”\nand long"]
    assert all(row[criterion] == 4 for row in rows for criterion in CRITERIA)


@pytest.mark.parametrize("delimiter", [";", "\t"])
@pytest.mark.parametrize("turned", [False, True])
def test_other_delimiters_and_another_order_of_columns_change_nothing(
    work: Workspace, choice: Choice, tmp_path: Path, delimiter: str, turned: bool
) -> None:
    rows = filled(choice, "Ada")
    columns = list(reversed(rows[0])) if turned else list(rows[0])
    (tmp_path / "ratings.csv").write_text(as_csv(rows, delimiter, columns))
    import_ratings(work, [tmp_path / "ratings.csv"])
    assert [row["coherence"] for row in kept(work.root)] == [4] * LINES


@pytest.mark.parametrize("mark", ["3", " 3 ", "3.0", "3,0", "3.00"])
def test_marks_are_read_as_spreadsheet_programs_write_them(
    work: Workspace, choice: Choice, tmp_path: Path, mark: str
) -> None:
    import_ratings(work, [sent_back(tmp_path, filled(choice, "Ada", fluency=mark))])
    assert sorted(row["fluency"] for row in kept(work.root)) == [3] + [4] * (LINES - 1)


def test_the_name_on_one_line_is_that_of_all(work: Workspace, choice: Choice, tmp_path: Path) -> None:
    import_ratings(work, [sent_back(tmp_path, filled(choice, "", rater=" Ada  Byron "))])
    assert {row["rater"] for row in kept(work.root)} == {"Ada Byron"}


def test_a_file_without_a_name_takes_that_of_the_option(work: Workspace, choice: Choice, tmp_path: Path) -> None:
    file = sent_back(tmp_path, filled(choice, ""))
    assert "line 2: the rater is not named" in refused(work, file)
    import_ratings(work, [file], rater="Ada")
    assert {row["rater"] for row in kept(work.root)} == {"Ada"}


def test_of_two_raters_in_one_file_a_line_without_a_name_is_named(
    work: Workspace, choice: Choice, tmp_path: Path
) -> None:
    rows = filled(choice, "Ada") + filled(choice, "Ben")
    rows[5]["rater"] = ""
    assert "line 7: the rater is not named" in refused(work, sent_back(tmp_path, rows))


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        ({"fluency": "6"}, "line 2: fluency is '6': give a whole number from 1 to 5"),
        ({"fluency": "0"}, "line 2: fluency is '0'"),
        ({"fluency": "3.5"}, "line 2: fluency is '3.5'"),
        ({"coherence": "good"}, "line 2: coherence is 'good'"),
        ({"coherence": "٤"}, "line 2: coherence is"),
        ({"preferred": "maybe"}, "line 2: preferred is 'maybe': write x"),
        ({"task": "T99"}, "line 2: task 'T99' is none of study pilot (T01 to T04)"),
        ({"task": ""}, "line 2: task '' is none of study pilot"),
        ({"label": "Z"}, "line 2: label 'Z' is none of T01 (A, B, C)"),
        ({"label": "B"}, "line 3: Ada has section B of T01 on"),
        ({"rater": "x" * 101}, "line 2: rater is"),
        ({"rater": "a\x07b"}, "line 2: rater is"),
        ({"study": "other"}, "there is no study 'other'"),
        ({"study": "../../etc"}, "there is no study '../../etc'"),
    ],
)
def test_a_line_that_is_wrong_is_named_and_nothing_is_imported(
    work: Workspace, choice: Choice, tmp_path: Path, cells: dict[str, str], told: str
) -> None:
    import_ratings(work, [sent_back(tmp_path, filled(choice, "Ben"), "good.csv")])
    message = refused(work, sent_back(tmp_path, filled(choice, "Ada", **cells), "bad.csv"))
    assert told in message
    assert "bad.csv" in message or "study" in cells


def test_two_preferred_sections_of_one_task_are_refused(work: Workspace, choice: Choice, tmp_path: Path) -> None:
    rows = filled(choice, "Ada")
    rows[1]["preferred"] = "x"
    message = refused(work, sent_back(tmp_path, rows))
    assert "line 2 and" in message
    assert "line 3: Ada prefers 2 sections of T01: leave one x" in message


def test_one_bad_file_among_good_ones_keeps_all_of_them_out(work: Workspace, choice: Choice, tmp_path: Path) -> None:
    good = sent_back(tmp_path, filled(choice, "Ada"), "good.csv")
    bad = sent_back(tmp_path, filled(choice, "Ben", fluency="9"), "bad.csv")
    assert "bad.csv line 2" in refused(work, good, bad)
    assert not work.root.file(HUMAN_RATINGS, MONTH).exists()


def test_all_faults_of_a_file_are_told_at_once_but_no_more_than_ten(
    work: Workspace, choice: Choice, tmp_path: Path
) -> None:
    rows = [row | {"fluency": "7"} for row in filled(choice, "Ada")]
    lines = refused(work, sent_back(tmp_path, rows)).splitlines()
    assert len(lines) == 11
    assert lines[-1] == "and 2 more faults"


def test_a_long_comment_does_not_shift_the_lines_that_are_named(
    work: Workspace, choice: Choice, tmp_path: Path
) -> None:
    rows = filled(choice, "Ada", comment="one\ntwo\nthree")
    rows[1]["fluency"] = "7"
    assert "line 5: fluency" in refused(work, sent_back(tmp_path, rows))


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "is empty"),
        (b"task,label\r\nT01,A\r\n", "line 1: no column consistency"),
        (b"caf\xe9,label\r\n", "is not UTF-8 text"),
        (b'task,"label\r\nT01,A', "is no CSV"),
        (b"{", "is no JSON"),
        (b"[]", "the whole file"),
        (b"[" * 100_000, "is no JSON"),
        (b'{"format": "citeloom-ratings-2", "study": "pilot", "ratings": []}', "format"),
        (b'{"format": "citeloom-ratings-1", "study": "pilot", "ratings": []}', "no line of ratings"),
        (b"PK\x03\x04\x00\x00", "no column"),
    ],
)
def test_a_file_that_is_no_file_of_ratings_is_named(
    work: Workspace, choice: Choice, tmp_path: Path, content: bytes, told: str
) -> None:
    file = tmp_path / "strange"
    file.write_bytes(content)
    message = refused(work, file)
    assert told in message
    assert "strange" in message


def test_a_file_that_is_not_there_is_named(work: Workspace, choice: Choice, tmp_path: Path) -> None:
    assert "nowhere.csv cannot be read" in refused(work, tmp_path / "nowhere.csv")
    assert "cannot be read" in refused(work, tmp_path)


def test_columns_that_are_not_ours_are_told_of_and_columns_twice_are_refused(
    work: Workspace, choice: Choice, tmp_path: Path
) -> None:
    rows = [row | {"Notes": "mine"} for row in filled(choice, "Ada")]
    done = import_ratings(work, [sent_back(tmp_path, rows)])
    assert any("column notes is none of the sheet's" in note for note in done.notes)
    assert "column fluency is there twice" in refused(work, sent_back(tmp_path, [r | {"Fluency ": "4"} for r in rows]))


def test_cells_beyond_the_columns_are_refused(work: Workspace, choice: Choice, tmp_path: Path) -> None:
    text = as_csv(filled(choice, "Ada")).splitlines()
    text[2] += ",5"
    (tmp_path / "ratings.csv").write_text("\n".join(text))
    assert "line 3: it has more cells" in refused(work, tmp_path / "ratings.csv")


def test_half_filled_lines_are_kept_with_nothing_in_place_of_marks(
    work: Workspace, choice: Choice, tmp_path: Path
) -> None:
    rows = filled(choice, "Ada")
    for row in rows[1:3]:
        row.update(dict.fromkeys(CRITERIA, ""))
    rows[0].update(fluency="", preferred="")
    import_ratings(work, [sent_back(tmp_path, rows)])
    first = choice.study.tasks[0]
    found = {row["label"]: row for row in kept(work.root) if row["task_id"] == first.task_id}
    assert [found["A"][name] for name in ("fluency", "coherence")] == [None, 4]
    assert [found["B"][criterion] for criterion in CRITERIA] == [None] * 6
    assert [row["preferred"] for row in found.values()] == [None] * 3


def test_a_task_without_any_entry_is_left_out_and_told(work: Workspace, choice: Choice, tmp_path: Path) -> None:
    rows = filled(choice, "Ada")
    for row in rows[3:]:
        row.update(dict.fromkeys((*CRITERIA, "preferred"), ""))
    done = import_ratings(work, [sent_back(tmp_path, rows)])
    assert (done.tasks, done.rows) == (1, 3)
    assert any("nothing was entered for 3 of 4 tasks" in note for note in done.notes)


def test_the_sheet_as_it_was_given_out_is_refused(work: Workspace, choice: Choice, tmp_path: Path) -> None:
    (tmp_path / "sheet.csv").write_bytes(rater_files(choice)["sheet.csv"])
    assert "sheet.csv holds no mark, no choice" in refused(work, tmp_path / "sheet.csv", rater="Ada")


def test_the_sheet_can_be_filled_in_as_it_is(work: Workspace, choice: Choice, tmp_path: Path) -> None:
    empty = ",,,,,,,,"
    text = rater_files(choice)["sheet.csv"].decode("utf-8-sig").replace("pilot,,", "pilot,Ada,")
    (tmp_path / "sheet.csv").write_text(text.replace(f"T01,A{empty}", "T01,A,5,4,3,2,1,,x,fine"), encoding="utf-8-sig")
    import_ratings(work, [tmp_path / "sheet.csv"])
    row = next(row for row in kept(work.root) if row["label"] == "A")
    assert [row[criterion] for criterion in CRITERIA] == [5, 4, 3, 2, 1, None]
    assert (row["preferred"], row["comment"]) == (True, "fine")


def test_importing_twice_changes_no_byte(work: Workspace, choice: Choice, tmp_path: Path) -> None:
    file = sent_back(tmp_path, filled(choice, "Ada"))
    import_ratings(work, [file])
    before = work.root.file(HUMAN_RATINGS, MONTH).read_bytes()
    done = import_ratings(work, [file])
    assert work.root.file(HUMAN_RATINGS, MONTH).read_bytes() == before
    assert {task for _, _, task in done.replaced} == {"T01", "T02", "T03", "T04"}


def test_the_order_in_which_raters_are_imported_does_not_matter(tmp_path: Path) -> None:
    made = []
    for turn in (1, -1):
        work = workspace(tmp_path / f"data{turn}")
        write_month(work.root)
        choice = exported(work.root)
        for rater in ("Ada", "Ben", "Cleo")[::turn]:
            import_ratings(work, [sent_back(tmp_path, filled(choice, rater), f"{rater}.csv")])
        made.append(kept(work.root))
    assert made[0] == made[1]
    assert len(made[0]) == 3 * LINES


def test_the_same_rater_again_replaces_that_task_and_no_other(work: Workspace, choice: Choice, tmp_path: Path) -> None:
    import_ratings(work, [sent_back(tmp_path, filled(choice, "Ada") + filled(choice, "Ben"))])
    again = [row | {"fluency": "1"} for row in filled(choice, "ADA")[:3]]
    done = import_ratings(work, [sent_back(tmp_path, again)])
    assert done.replaced == (("pilot", "Ada", "T01"),)
    rows = kept(work.root)
    assert len(rows) == 2 * LINES
    changed = [(row["rater"], row["task_id"]) for row in rows if row["fluency"] == 1]
    assert changed == [("Ada", choice.study.tasks[0].task_id)] * 3


def test_of_two_files_of_one_rater_the_later_one_counts_and_it_is_told(
    work: Workspace, choice: Choice, tmp_path: Path
) -> None:
    first = sent_back(tmp_path, filled(choice, "Ada"), "first.csv")
    later = sent_back(tmp_path, [row | {"fluency": "1"} for row in filled(choice, "Ada")], "later.csv")
    done = import_ratings(work, [first, later])
    assert {row["fluency"] for row in kept(work.root)} == {1}
    assert any("later.csv replaces what an earlier file has of Ada on T01" in note for note in done.notes)


def test_tasks_of_two_months_go_to_two_files(work: Workspace, tmp_path: Path) -> None:
    write_month(work.root, "2024-04", tasks=2)
    choice = exported(work.root, "both")
    done = import_ratings(work, [sent_back(tmp_path, filled(choice, "Ada"))])
    assert done.months == (MONTH, "2024-04")
    assert [len(kept(work.root, month)) for month in done.months] == [LINES, 2 * len(SYSTEMS)]


def test_two_studies_of_one_month_lie_beside_each_other(work: Workspace, choice: Choice, tmp_path: Path) -> None:
    other = exported(work.root, "second", seed=3)
    import_ratings(work, [sent_back(tmp_path, filled(choice, "Ada"), "1.csv")])
    import_ratings(work, [sent_back(tmp_path, filled(other, "Ada"), "2.csv")])
    rows = kept(work.root)
    assert [row["study"] for row in rows] == ["pilot"] * LINES + ["second"] * LINES


def test_a_file_that_does_not_say_its_study_takes_that_of_the_option(
    work: Workspace, choice: Choice, tmp_path: Path
) -> None:
    file = sent_back(tmp_path, [row | {"study": ""} for row in filled(choice, "Ada")])
    assert "give --name" in refused(work, file)
    assert import_ratings(work, [file], name="pilot").studies == ("pilot",)


def test_a_file_of_another_study_than_the_option_says_is_refused(
    work: Workspace, choice: Choice, tmp_path: Path
) -> None:
    exported(work.root, "second", seed=3)
    file = sent_back(tmp_path, filled(choice, "Ada"))
    assert "it is of study pilot, not of second" in refused(work, file, name="second")


def test_json_says_the_same_as_csv(work: Workspace, choice: Choice, tmp_path: Path) -> None:
    (tmp_path / "ratings.json").write_text(json.dumps(as_json(filled(choice, "Ada", comment="=1+1"))))
    import_ratings(work, [tmp_path / "ratings.json"])
    from_json = kept(work.root)
    import_ratings(work, [sent_back(tmp_path, filled(choice, "Ada", comment="'=1+1"))])
    assert kept(work.root) == from_json
    assert [row["comment"] for row in from_json if row["comment"]] == ["=1+1"]


def as_json(rows: list[Row]) -> Row:
    """Lines as the form gives them."""
    chosen = {row["task"] for row in rows if row["preferred"]}
    ratings = [
        {
            "task": row["task"], "label": row["label"], "comment": row["comment"],
            "preferred": row["preferred"] == "x" if row["task"] in chosen else None,
            **{criterion: int(row[criterion]) if row[criterion] else None for criterion in CRITERIA},
        }
        for row in rows
    ]  # fmt: skip
    return {"format": "citeloom-ratings-1", "study": rows[0]["study"], "rater": rows[0]["rater"], "ratings": ratings}


@pytest.mark.parametrize("wrong", [6, 0, "4", 4.5, True, [4]])
def test_a_mark_in_json_that_is_none_is_named(work: Workspace, choice: Choice, tmp_path: Path, wrong: object) -> None:
    content = as_json(filled(choice, "Ada"))
    content["ratings"][2]["fluency"] = wrong
    (tmp_path / "ratings.json").write_text(json.dumps(content))
    assert "ratings.json, entry 3, fluency: " in refused(work, tmp_path / "ratings.json")


def test_sections_written_anew_since_the_export_are_told(work: Workspace, choice: Choice, tmp_path: Path) -> None:
    assert changed_since(work.root, choice.study) == []
    write_month(work.root, text=lambda text: text.replace("Text number 1", "Another text"))
    done = import_ratings(work, [sent_back(tmp_path, filled(choice, "Ada"))])
    assert len(changed_since(work.root, choice.study)) == 4
    assert any("4 sections were written anew" in note for note in done.notes)


def test_the_table_says_which_files_it_was_made_of(work: Workspace, choice: Choice, tmp_path: Path) -> None:
    for rater in ("Ada", "Ben"):
        import_ratings(work, [sent_back(tmp_path, filled(choice, rater))])
    provenance = read_provenance(work.root.file(HUMAN_RATINGS, MONTH))
    assert provenance is not None
    assert (provenance.rows, len(provenance.inputs)) == (2 * LINES, 2)
    assert all(name.startswith("ratings.csv ") for name in provenance.inputs)


def test_an_import_that_meets_another_one_waits_and_then_says_so(
    work: Workspace, choice: Choice, tmp_path: Path
) -> None:
    file = sent_back(tmp_path, filled(choice, "Ada"))
    with FileLock(work.cache("locks") / "human_ratings.lock"):
        assert "another import holds" in refused(work, file, patience_seconds=0.1)
    assert import_ratings(work, [file]).rows == LINES


def test_a_study_that_is_not_there_is_said_to_be_missing(work: Workspace, choice: Choice, tmp_path: Path) -> None:
    file = sent_back(tmp_path, filled(choice, "Ada"))
    elsewhere = workspace(tmp_path / "elsewhere")
    with pytest.raises(MissingInput, match=r"there: none\): export it first"):
        import_ratings(elsewhere, [file])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(content=st.binary(max_size=200) | st.text(alphabet='task,label\n\r";\t{}[]=\0é', max_size=80).map(str.encode))
def test_no_bytes_at_all_raise_anything_but_a_message(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "strange"
    file.write_bytes(content)
    with pytest.raises(SettingError, match="strange"):
        read_returned(file, "Ada")
