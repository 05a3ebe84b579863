"""Sheets that graders send back, into the table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from pipeline.engine.stage import Workspace
from pipeline.errors import CiteloomError, MissingInput, SettingError, TransientFailure
from pipeline.evaluation.answers.choosing import Choice, choose, write_sheets
from pipeline.evaluation.answers.grading_key import keep_key
from pipeline.evaluation.answers.keeping import import_grades
from pipeline.evaluation.answers.people_results import read_people
from pipeline.evaluation.answers.rows import grade_of
from pipeline.storage.provenance import read_provenance
from pipeline.tables import ANSWER_GRADES, HUMAN_GRADES, QUESTIONS
from tests.unit.evaluation.answers.graded import grade
from tests.unit.evaluation.answers.people_month import (
    MONTH,
    SYSTEMS,
    always,
    fill,
    month_grades,
    rows_of,
    write_answers,
)
from tests.unit.evaluation.made_up import workspace

LINES = 4 + 3


@pytest.fixture
def work(tmp_path: Path) -> Workspace:
    """A workspace with one month."""
    work = workspace(tmp_path / "data")
    write_answers(work.root)
    return work


def sheets(work: Workspace, folder: Path, graders: int = 3, **options: Any) -> tuple[Choice, list[Path]]:
    """A grading with its key kept, and the sheets of its graders."""
    wanted: dict[str, Any] = {"name": "pilot", "months": "all", "systems": None, "questions": 50, "seed": 7} | options
    choice = choose(work.root, wanted.pop("name"), wanted.pop("months"), wanted.pop("systems"), **wanted)
    keep_key(work.root, choice.key)
    return choice, [file for file in write_sheets(choice, folder, graders) if file.suffix == ".csv"]


def kept(work: Workspace, month: str = MONTH) -> list[dict[str, Any]]:
    return work.root.rows(HUMAN_GRADES, month)


def refused(work: Workspace, *files: Path, **options: Any) -> str:
    """The message with which an import is refused; nothing that was there before is changed."""
    before = {file: file.read_bytes() for file in (work.root.path / HUMAN_GRADES.name).glob("*")}
    with pytest.raises(CiteloomError) as error:
        import_grades(work, files, **options)
    assert {file: file.read_bytes() for file in (work.root.path / HUMAN_GRADES.name).glob("*")} == before
    return str(error.value)


def test_graders_get_the_same_lines_each_in_an_order_of_their_own(work: Workspace, tmp_path: Path) -> None:
    for first in (3, 5, 7):
        write_answers(work.root, f"2024-0{first + 1}", first=first)
    choice, files = sheets(work, tmp_path / "out")
    read = [rows_of(file) for file in files]
    assert {len(rows) for rows in read} == {4 * LINES}
    assert {row["grader"] for row in read[1]} == {"grader-2"}
    lines = [sorted((row["label"], row["part"], row["number"], row["text"]) for row in rows) for rows in read]
    assert lines[0] == lines[1] == lines[2]
    assert len({tuple(row["label"] for row in rows) for rows in read}) > 1
    assert read[0][0]["papers"] == "Boats, https://arxiv.org/abs/2403.00001"
    assert choice.notes()[-1] == "each grader has 28 lines to fill in, of 12 answers to 8 questions"


def test_no_file_that_graders_get_names_a_system_a_verdict_of_the_judge_or_the_key(
    work: Workspace, tmp_path: Path
) -> None:
    sheets(work, tmp_path / "out")
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == [
        "README.txt", *(f"form-{n}.html" for n in (1, 2, 3)), *(f"sheet-{n}.csv" for n in (1, 2, 3)),
    ]  # fmt: skip
    for file in (tmp_path / "out").glob("*"):
        text = file.read_text(encoding="utf-8-sig")
        assert not [word for word in (*SYSTEMS, "control", "judge") if word in text]
    assert {row["verdict"] for row in rows_of(tmp_path / "out" / "sheet-1.csv")} == {""}


def test_the_same_seed_gives_the_same_bytes_and_more_graders_the_same_key(work: Workspace, tmp_path: Path) -> None:
    sheets(work, tmp_path / "one")
    sheets(work, tmp_path / "two", graders=4)
    for name in ("sheet-1.csv", "sheet-3.csv"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    with pytest.raises(SettingError, match="there is a grading pilot already"):
        sheets(work, tmp_path / "three", seed=8)


def test_what_abstains_needs_no_grader_and_what_was_not_graded_by_all_is_left_out(
    work: Workspace, tmp_path: Path
) -> None:
    write_answers(work.root, "2024-04", first=3, grades=month_grades(first=3)[:1])
    choice, files = sheets(work, tmp_path / "out")
    assert (choice.fitting, choice.lacking, choice.silent) == (2, {"arxivbot": 1, "direct": 2}, {"direct": 1})
    assert len(rows_of(files[0])) == LINES
    alone, _ = sheets(work, tmp_path / "alone", name="alone", systems=["arxivbot"])
    assert (alone.fitting, dict(alone.silent)) == (3, {})


def test_verdicts_go_with_their_systems_into_the_table(work: Workspace, tmp_path: Path) -> None:
    choice, files = sheets(work, tmp_path / "out")
    done = import_grades(work, [fill(files[0], always("Correct", "held"), comment="Sure; quite sure.")])
    rows = kept(work)
    assert (done.rows, done.answers, done.graders, done.months) == (LINES, 3, ("grader-1",), (MONTH,))
    assert all(choice.key.labels[row["label"]].system == row["system"] for row in rows)
    assert {(row["question_id"], row["system"], row["part"], row["text"], row["verdict"]) for row in rows} == {
        ("q1", "arxivbot", "claim", "Claim 1.", "correct"), ("q1", "arxivbot", "claim", "Claim 2.", "correct"),
        ("q1", "arxivbot", "gold", "Fact 1.", "held"), ("q1", "direct", "claim", "Claim 1.", "correct"),
        ("q1", "direct", "gold", "Fact 1.", "held"), ("q2", "arxivbot", "claim", "Claim 1.", "correct"),
        ("q2", "arxivbot", "gold", "Fact 1.", "held"),
    }  # fmt: skip
    assert [row["comment"] for row in rows if row["comment"]] == ["Sure; quite sure."]
    assert read_provenance(work.root.file(HUMAN_GRADES, MONTH)).inputs  # type: ignore[union-attr]


def test_importing_twice_changes_no_byte(work: Workspace, tmp_path: Path) -> None:
    _, files = sheets(work, tmp_path / "out")
    filled = [fill(file, always("partly", "not")) for file in files]
    import_grades(work, filled)
    before = work.root.file(HUMAN_GRADES, MONTH).read_bytes()
    done = import_grades(work, filled)
    assert work.root.file(HUMAN_GRADES, MONTH).read_bytes() == before
    assert len(done.replaced) == 3 * 3


def test_one_by_one_or_together_in_any_order_the_rows_are_the_same(work: Workspace, tmp_path: Path) -> None:
    _, files = sheets(work, tmp_path / "out")
    filled = [fill(file, always("partly", "not")) for file in files]
    import_grades(work, filled)
    together = kept(work)
    work.root.file(HUMAN_GRADES, MONTH).unlink()
    for file in reversed(filled):
        import_grades(work, [file])
    assert kept(work) == together
    assert len(together) == 3 * LINES


def test_who_grades_an_answer_again_replaces_it_and_no_other(work: Workspace, tmp_path: Path) -> None:
    _, files = sheets(work, tmp_path / "out")
    import_grades(work, [fill(files[0], always("correct", "held"), grader="Ada")])
    label = rows_of(files[0])[0]["label"]
    again = fill(files[1], lambda row: "partly" if row["label"] == label else "", grader="ADA")
    done = import_grades(work, [again])
    assert done.replaced == (("pilot", "Ada", label),)
    rows = kept(work)
    assert len(rows) == LINES
    assert {row["label"] for row in rows if row["verdict"] == "partly"} == {label}
    assert {row["grader"] for row in rows} == {"Ada"}
    assert any("ADA has no verdict on" in note for note in done.notes)


def test_verdicts_of_two_months_go_to_two_files_or_to_none(work: Workspace, tmp_path: Path) -> None:
    write_answers(work.root, "2024-04", first=3)
    _, files = sheets(work, tmp_path / "out")
    good, bad = fill(files[0], always("wrong", "not")), fill(files[1], always("perhaps", "not"))
    assert "sheet-2.csv line 2: verdict is 'perhaps'" in refused(work, good, bad)
    assert not work.root.months(HUMAN_GRADES)
    assert import_grades(work, [good]).months == (MONTH, "2024-04")
    assert (len(kept(work)), len(kept(work, "2024-04"))) == (LINES, LINES)


def test_a_comment_alone_is_kept_without_a_verdict(work: Workspace, tmp_path: Path) -> None:
    _, files = sheets(work, tmp_path / "out")
    done = import_grades(work, [fill(files[0], lambda row: "", comment="=cannot tell")])
    assert [(row["verdict"], row["comment"]) for row in kept(work)] == [(None, "=cannot tell")]
    assert any("no verdict on 7 of 7 lines" in note for note in done.notes)
    assert read_people(work.root, {MONTH: month_grades()}).verdicts == 0


def test_what_cannot_be_taken_is_named_and_changes_nothing(work: Workspace, tmp_path: Path) -> None:
    choice, files = sheets(work, tmp_path / "out")
    assert "holds no verdict and no comment" in refused(work, files[0])
    good = fill(files[0], always("wrong", "not"))
    import_grades(work, [good])
    other = tmp_path / "other.csv"
    other.write_text(good.read_text().replace("pilot,", "another,"))
    assert "there is no grading 'another'" in refused(work, other)
    assert "it is of grading 'another', not of pilot" in refused(work, other, name="pilot")
    other.write_text(good.read_text().replace("pilot,", "../../etc,"))
    assert "there is no grading '../../etc'" in refused(work, other)
    other.write_text(good.read_text().replace("pilot,", ","))
    assert "does not say of which grading" in refused(work, other)
    assert import_grades(work, [other], name="pilot").rows == LINES
    other.write_text(good.read_text().replace("grader-1", "x" * 101))
    assert "grader is" in refused(work, other)
    key = tmp_path / "elsewhere.json"
    key.write_bytes(choice.key.model_copy(update={"study": "autumn"}).file_bytes())
    assert "it is of grading 'pilot', not of autumn" in refused(work, good, key=key)
    key.write_text("{}")
    assert "is no key, or damaged" in refused(work, good, key=key)
    assert "nowhere.csv cannot be read" in refused(work, tmp_path / "nowhere.csv")


def test_the_key_may_come_from_elsewhere(work: Workspace, tmp_path: Path) -> None:
    choice, files = sheets(work, tmp_path / "out")
    moved = tmp_path / "key.json"
    (work.root.path / "gradings" / "pilot" / "key.json").rename(moved)
    good = fill(files[0], always("wrong", "not"))
    assert "there is no grading 'pilot'" in refused(work, good)
    assert import_grades(work, [good], key=moved).studies == (choice.key.study,)


def test_an_import_waits_for_another_one_and_then_gives_up(work: Workspace, tmp_path: Path) -> None:
    _, files = sheets(work, tmp_path / "out")
    good = fill(files[0], always("wrong", "not"))
    with FileLock(work.cache("locks") / "human_grades.lock"), pytest.raises(TransientFailure, match="another import"):
        import_grades(work, [good], patience_seconds=0.1)


def test_answers_that_were_written_anew_or_split_anew_are_told_and_left_out(work: Workspace, tmp_path: Path) -> None:
    _, files = sheets(work, tmp_path / "out")
    filled = [fill(file, always("correct", "held")) for file in files[:2]]
    import_grades(work, filled)
    found = read_people(work.root, {MONTH: map(grade_of, work.root.rows(ANSWER_GRADES, MONTH))})
    assert (found.outdated, found.answers, found.verdicts) == (0, 3, 2 * LINES)
    write_answers(work.root, words=" Mended.")
    done = import_grades(work, filled)
    assert any(
        "grading pilot: answers that were written anew since its sheets were made: 1 (Q" in note for note in done.notes
    )
    found = read_people(work.root, {MONTH: map(grade_of, work.root.rows(ANSWER_GRADES, MONTH))})
    assert (found.outdated, found.answers) == (2 * 2, 2)
    regraded = [grade(["correct"], ["held"], system="arxivbot"), *month_grades()[1:]]
    assert read_people(work.root, {MONTH: regraded}).outdated == 2 * 2 + 2
    work.root.file(QUESTIONS, MONTH).unlink()
    assert read_people(work.root, {MONTH: regraded}).answers == 0


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        ({"systems": ["gpt"]}, SettingError, "nothing of gpt was graded; there is arxivbot, direct"),
        ({"name": "direct-1"}, SettingError, "tells raters of direct"),
        ({"name": "../up"}, SettingError, "names no study"),
        ({"months": "2031-01"}, SettingError, "2031-01"),
    ],
)
def test_what_cannot_be_graded_is_named(
    work: Workspace, tmp_path: Path, options: dict[str, Any], error: type[CiteloomError], told: str
) -> None:
    with pytest.raises(error, match=told):
        sheets(work, tmp_path / "out", **options)


def test_without_grades_there_are_no_sheets(tmp_path: Path) -> None:
    with pytest.raises(MissingInput, match="no answer was graded: set CITELOOM_QUESTIONS"):
        sheets(workspace(tmp_path / "data"), tmp_path / "out")


def test_a_question_of_two_months_is_refused(work: Workspace, tmp_path: Path) -> None:
    write_answers(work.root, "2024-04")
    with pytest.raises(SettingError, match="question q1 is asked in 2024-03 and in 2024-04"):
        sheets(work, tmp_path / "out")
