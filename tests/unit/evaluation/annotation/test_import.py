"""Ratings that come back: whatever a spreadsheet program made of them is read, and what is wrong is named and changes
nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.engine.locks import month_lock
from pipeline.engine.stage import Workspace
from pipeline.errors import MissingInput, SettingError
from pipeline.evaluation.annotation.export import Export, write_files
from pipeline.evaluation.annotation.importer import import_files, read_returned, read_status
from pipeline.storage.provenance import read_provenance
from pipeline.tables import CRITERIA, HUMAN_RATINGS
from tests.unit.evaluation.annotation.studied import (
    MONTH,
    SYSTEMS,
    Row,
    as_csv,
    exported,
    filled,
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


def test_letters_become_the_systems_of_the_key(work: Workspace, study: Export, tmp_path: Path) -> None:
    done = import_files(work, [sent_back(tmp_path, filled(study, "Ada", fluency="2", comment="Good."))])
    rows = kept(work.root)
    keys = {(unit.item_id, unit.label): unit.system for unit in study.study.units.values()}
    assert (done.rows, done.annotators, done.tables) == (LINES, ("Ada",), {"human_ratings": (MONTH,)})
    assert len(rows) == LINES
    assert all(row["system"] == keys[row["task_id"], row["label"]] for row in rows)
    assert all(row["preferred"] == row["label"].endswith("-A") for row in rows)
    first = next(row for row in rows if row["comment"])
    assert (first["fluency"], first["coherence"], first["comment"], first["label"]) == (2, 4, "Good.", "T01-A")


@pytest.mark.parametrize(
    "saved",
    [
        lambda rows: as_csv(rows).encode("utf-8-sig"),
        lambda rows: as_csv(rows).encode("utf-16"),
        lambda rows: f"{as_csv(rows)}\r\n,,,\r\n\r\n".encode(),
        lambda rows: as_csv(rows, ";").replace("fluency", " Fluency ").encode(),
        lambda rows: as_csv(rows, "\t", list(reversed(rows[0]))).encode(),
    ],
    ids=["byte order mark", "UTF-16", "blank lines", "semicolons and capitals", "tabs and columns in another order"],
)
def test_whatever_a_spreadsheet_program_makes_of_the_file_it_is_read(
    work: Workspace, study: Export, tmp_path: Path, saved: Callable[[list[Row]], bytes]
) -> None:
    file = tmp_path / "ratings.csv"
    file.write_bytes(saved(filled(study, "Bjørn Ö.", comment="so, so; “fine”\nand long")))
    import_files(work, [file])
    rows = kept(work.root)
    assert {row["rater"] for row in rows} == {"Bjørn Ö."}
    assert [row["comment"] for row in rows if row["comment"]] == ["so, so; “fine”\nand long"]
    assert all(row[criterion] == 4 for row in rows for criterion in CRITERIA)


def test_marks_are_read_as_spreadsheet_programs_write_them(work: Workspace, study: Export, tmp_path: Path) -> None:
    marks = ("3", " 3 ", "3.0", "3,0", "3.00")
    rows = [row | {"fluency": mark} for row, mark in zip(filled(study, "Ada"), marks, strict=False)]
    import_files(work, [sent_back(tmp_path, rows)])
    assert [row["fluency"] for row in kept(work.root)] == [3] * len(marks)


def test_the_name_on_one_line_is_that_of_all_and_the_option_overrides_any(
    work: Workspace, study: Export, tmp_path: Path
) -> None:
    file = sent_back(tmp_path, filled(study, ""))
    assert "the annotator is not named" in refused(work, file)
    import_files(work, [file], annotator="Ada Byron")
    for named, override in ((filled(study, "", annotator=" Ada  Byron "), None), (filled(study, "x"), "ada byron")):
        done = import_files(work, [sent_back(tmp_path, named)], annotator=override)
        assert (done.annotators, done.replaced) == (("Ada Byron",), LINES)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({0: {"fluency": "6"}}, "line 2: fluency is '6': write a whole number from 1 to 5, or leave it empty"),
        ({0: {"fluency": "0"}}, "line 2: fluency is '0'"),
        ({0: {"fluency": "3.5"}}, "line 2: fluency is '3.5'"),
        ({0: {"coherence": "good"}}, "line 2: coherence is 'good'"),
        ({0: {"coherence": "٤"}}, "line 2: coherence is"),
        ({0: {"preferred": "maybe"}}, "line 2: preferred is 'maybe': write x"),
        ({1: {"preferred": "x"}}, "line 3: preferred is marked more than once in T01"),
        ({0: {"unit": "T99-A"}}, "line 2: unit is 'T99-A': keep the units of the sheet, such as T01-A"),
        ({0: {"unit": ""}}, "line 2: unit is ''"),
        ({0: {"unit": "T01-B"}}, "line 3: unit T01-B is there twice"),
        ({place: {"annotator": "x" * 101} for place in range(LINES)}, "line 2: annotator is"),
        ({place: {"annotator": "a\x07b"} for place in range(LINES)}, "line 2: annotator is"),
        ({5: {"annotator": "annotator-1"}}, "line 7: annotator is 'annotator-1', and 'Ada' on"),
        ({0: {"study": "other"}}, "line 3: it is of study 'pilot', not of other"),
        ({0: {"study": "../../etc"}}, "line 3: it is of study 'pilot', not of ../../etc"),
        ({0: {"comment": "one\ntwo\nthree"}, 1: {"fluency": "7"}}, "line 5: fluency"),
    ],
)
def test_a_line_that_is_wrong_is_named_and_nothing_is_imported(
    work: Workspace, study: Export, tmp_path: Path, changes: dict[int, dict[str, str]], told: str
) -> None:
    import_files(work, [sent_back(tmp_path, filled(study, "Ben"), "good.csv")])
    rows = [row | changes.get(place, {}) for place, row in enumerate(filled(study, "Ada"))]
    message = refused(work, sent_back(tmp_path, rows, "bad.csv"))
    assert told in message
    assert "bad.csv" in message


def test_all_faults_of_a_file_are_told_at_once_but_no_more_than_ten(
    work: Workspace, study: Export, tmp_path: Path
) -> None:
    rows = [row | {"fluency": "7"} for row in filled(study, "Ada")]
    *lines, more = refused(work, sent_back(tmp_path, rows)).splitlines()
    assert (len(lines), more) == (10, "and 2 more faults")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "is empty"),
        (b"study,annotator,unit\r\npilot,Ada,T01-A\r\n", "line 1: no column consistency"),
        (b"study,annotator,fluency\r\npilot,Ada,3\r\n", "line 1: no column unit"),
        (b"PK\x03\x04\x00\x00", "does not say of which study"),
    ],
)
def test_a_file_that_is_no_file_of_ratings_is_named(
    work: Workspace, study: Export, tmp_path: Path, content: bytes, told: str
) -> None:
    file = tmp_path / "strange"
    file.write_bytes(content)
    message = refused(work, file)
    assert told in message
    assert "strange" in message
    assert "cannot be read" in refused(work, tmp_path)


def test_columns_that_are_not_ours_are_told_of_and_cells_beyond_them_are_refused(
    work: Workspace, study: Export, tmp_path: Path
) -> None:
    rows = [row | {"Notes": "mine"} for row in filled(study, "Ada")]
    done = import_files(work, [sent_back(tmp_path, rows)])
    assert any("column notes is not known" in note for note in done.notes)
    lines = as_csv(filled(study, "Ada")).splitlines()
    lines[2] += ",5"
    (tmp_path / "ratings.csv").write_text("\n".join(lines))
    assert "line 3: it has more cells" in refused(work, tmp_path / "ratings.csv")


def test_half_filled_lines_are_imported_with_null_in_place_of_marks(
    work: Workspace, study: Export, tmp_path: Path
) -> None:
    rows = filled(study, "Ada")
    for row in rows[1:3]:
        row.update(dict.fromkeys(CRITERIA, ""))
    rows[0].update(fluency="", preferred="")
    rows[2]["comment"] = "I cannot tell."
    done = import_files(work, [sent_back(tmp_path, rows)])
    first = study.study.units["T01-A"].item_id
    found = {row["label"]: row for row in kept(work.root) if row["task_id"] == first}
    assert set(found) == {"T01-A", "T01-C"}, "a line without any entry is left out"
    assert [found["T01-A"][name] for name in ("fluency", "coherence")] == [None, 4]
    assert [found["T01-C"][criterion] for criterion in CRITERIA] == [None] * 6
    assert [row["preferred"] for row in found.values()] == [None] * 2
    assert any(f"Ada filled in {6 * LINES - 13} of {6 * LINES} cells" in note for note in done.notes)
    only_preferred = [row | dict.fromkeys(CRITERIA, "") for row in filled(study, "Ben")]
    import_files(work, [sent_back(tmp_path, only_preferred[:3])])
    assert [row["preferred"] for row in kept(work.root) if row["rater"] == "Ben"] == [True, False, False]


def test_the_sheet_as_it_was_given_out_is_refused(work: Workspace, study: Export, tmp_path: Path) -> None:
    (sheet,) = (file for file in write_files(study, tmp_path, 1) if file.suffix == ".csv")
    assert "sheet-1.csv has no entry" in refused(work, sheet)


def test_importing_twice_changes_no_byte_and_of_two_files_of_one_rater_the_later_one_counts(
    work: Workspace, study: Export, tmp_path: Path
) -> None:
    file = sent_back(tmp_path, filled(study, "Ada"))
    import_files(work, [file])
    before = work.root.file(HUMAN_RATINGS, MONTH).read_bytes()
    done = import_files(work, [file])
    assert work.root.file(HUMAN_RATINGS, MONTH).read_bytes() == before
    assert done.replaced == LINES
    later = sent_back(tmp_path, [row | {"fluency": "1"} for row in filled(study, "Ada")], "later.csv")
    done = import_files(work, [file, later])
    assert {row["fluency"] for row in kept(work.root)} == {1}
    assert any("later.csv replaces what an earlier file has of Ada on" in note for note in done.notes)


def test_one_by_one_or_together_in_any_order_the_rows_are_the_same(
    work: Workspace, study: Export, tmp_path: Path
) -> None:
    files = [sent_back(tmp_path, filled(study, rater), f"{rater}.csv") for rater in ("Ada", "Ben", "Cleo")]
    import_files(work, files)
    together = kept(work.root)
    assert len(together) == 3 * LINES
    work.root.file(HUMAN_RATINGS, MONTH).unlink()
    for file in reversed(files):
        import_files(work, [file])
    assert kept(work.root) == together


def test_the_same_rater_again_replaces_that_task_and_no_other(work: Workspace, study: Export, tmp_path: Path) -> None:
    for rater in ("Ada", "Ben"):
        import_files(work, [sent_back(tmp_path, filled(study, rater))])
    provenance = read_provenance(work.root.file(HUMAN_RATINGS, MONTH))
    assert provenance is not None
    assert (provenance.rows, len(provenance.inputs)) == (2 * LINES, 2)
    assert all(name.startswith("ratings.csv ") for name in provenance.inputs)
    again = [row | {"fluency": "1"} for row in filled(study, "ADA")[:3]]
    done = import_files(work, [sent_back(tmp_path, again)])
    assert done.replaced == 3
    rows = kept(work.root)
    assert len(rows) == 2 * LINES
    changed = [(row["rater"], row["task_id"]) for row in rows if row["fluency"] == 1]
    assert changed == [("Ada", study.study.units["T01-A"].item_id)] * 3


def test_months_go_to_files_of_their_own_in_which_studies_lie_beside_each_other(
    work: Workspace, study: Export, tmp_path: Path
) -> None:
    write_month(work.root, "2024-04", tasks=2)
    both = exported(work.root, "second", seed=3)
    done = import_files(work, [sent_back(tmp_path, filled(both, "Ada"), "2.csv")])
    assert done.tables == {"human_ratings": (MONTH, "2024-04")}
    import_files(work, [sent_back(tmp_path, filled(study, "Ada"), "1.csv")])
    assert [row["study"] for row in kept(work.root)] == ["pilot"] * LINES + ["second"] * LINES
    assert [row["study"] for row in kept(work.root, "2024-04")] == ["second"] * 2 * len(SYSTEMS)


def test_the_option_names_the_study_of_a_file_that_does_not_and_contradicts_none(
    work: Workspace, study: Export, tmp_path: Path
) -> None:
    file = sent_back(tmp_path, [row | {"study": ""} for row in filled(study, "Ada")])
    assert "give --name" in refused(work, file)
    assert import_files(work, [file], name="pilot").studies == ("pilot",)
    file = sent_back(tmp_path, filled(study, "Ada"))
    assert "it is of study 'pilot', not of second" in refused(work, file, name="second")


def test_the_status_says_how_much_each_annotator_filled_in(work: Workspace, study: Export, tmp_path: Path) -> None:
    (before,) = read_status(work.root)
    assert (before.study, before.kind, before.items, before.units, before.filled) == ("pilot", "ratings", 4, LINES, {})
    import_files(work, [sent_back(tmp_path, filled(study, "Ada", fluency="", comment="Good."))])
    (after,) = read_status(work.root)
    assert (after.filled, after.cells) == ({"Ada": 6 * LINES - 1}, 6 * LINES)


def test_an_import_waits_while_another_one_runs(work: Workspace, study: Export, tmp_path: Path) -> None:
    file = sent_back(tmp_path, filled(study, "Ada"))
    with ThreadPoolExecutor(1) as executor:
        with month_lock(work, "annotations", "all"):
            waiting = executor.submit(import_files, work, [file])
            with pytest.raises(TimeoutError):
                waiting.result(0.3)
            assert not work.root.file(HUMAN_RATINGS, MONTH).exists()
        assert waiting.result(30).rows == LINES


def test_a_study_that_is_not_there_is_said_to_be_missing(work: Workspace, study: Export, tmp_path: Path) -> None:
    file = sent_back(tmp_path, filled(study, "Ada"))
    elsewhere = workspace(tmp_path / "elsewhere")
    with pytest.raises(MissingInput, match=r"there: none\): run citeloom annotate export"):
        import_files(elsewhere, [file])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(content=st.binary(max_size=200) | st.text(alphabet='unit,label\n\r";\t{}[]=\0é', max_size=80).map(str.encode))
def test_no_bytes_at_all_raise_anything_but_a_message(
    work: Workspace, study: Export, tmp_path: Path, content: bytes
) -> None:
    file = tmp_path / "strange"
    file.write_bytes(content)
    with pytest.raises(SettingError, match="strange"):
        read_returned(work.root, file, name="pilot", annotator="Ada")
