"""People's grades of answers in the report: the numbers of its tables, worked out by hand."""

import json

import pytest

from pipeline.engine.run import State, run_stage, state
from pipeline.evaluation.annotation.grades import read_grade_results
from pipeline.evaluation.annotation.sheets import import_files
from pipeline.report.judgements import grades_section
from pipeline.report.publish import write_overall_page
from pipeline.report.stages import REPORT
from pipeline.tables import ANSWER_GRADES
from tests.month_tables import write_table
from tests.unit.evaluation.annotation.studies import (
    MONTH,
    always,
    fill,
    give_out,
    month_grades,
    write_answers,
)
from tests.unit.evaluation.made_up import workspace, write_month
from tests.unit.evaluation.made_up_answers import write_answers as write_report_answers


@pytest.fixture
def work(tmp_path):
    """A workspace with one month."""
    work = workspace(tmp_path / "data")
    write_answers(work.root)
    return work


def graded(work, folder, *verdicts, **choices):
    """Sheets go out, and come back with these verdicts."""
    _, files = give_out(work.root, folder, len(verdicts), **choices)
    import_files(work, [fill(file, verdict) for file, verdict in zip(files, verdicts, strict=True)])


def section(work, folder, *verdicts, judges=("judge",)):
    """The section after sheets with these verdicts came back."""
    graded(work, folder, *verdicts)
    return section_of(work, [grade for judge in judges for grade in month_grades(judge)])


def section_of(work, grades):
    """The section beside these grades of judges."""
    write_table(work.root, ANSWER_GRADES, MONTH, grades)
    return grades_section(read_grade_results(work.root, [MONTH]))


def rows(found, key):
    """Rows of a table by the names of its columns, as report.json has them."""
    grid = next(grid for grid in found.grids if grid.key == key)
    return grid.as_json()["rows"]


def table_1(found):
    """Rows of the table by people, by share and system."""
    return {(row["Share"], row["System"]): row for row in rows(found, "people_table_1")}


def test_a_month_without_graders_says_how_to_have_them(work):
    found = section_of(work, month_grades())
    assert found.grids == []
    assert "citeloom annotate export grades" in found.paragraphs[0]


def test_where_a_grader_marked_a_part_the_judge_is_taken_for_the_same_part(work, tmp_path):
    """Of arXivBot's claims on question 1 the judge has the first correct and the second wrong."""
    first = lambda row: "partly" if row["text"] == "Claim 1." else ""  # noqa: E731
    told = table_1(section(work, tmp_path / "out", first))
    assert told["Factual", "arXivBot"]["People"]["value"] == 0.5
    assert told["Factual", "arXivBot"]["Judge"] == {"value": 0.5, "low": 0.0, "high": 1.0}
    assert set(told) == {("Factual", "arXivBot"), ("Factual", "the model alone")}


def test_one_grader_agrees_with_nobody_and_two_judges_stand_apart(work, tmp_path):
    found = section(work, tmp_path / "out", always("correct", "held"), judges=("judge", "second"))
    assert [grid.key for grid in found.grids] == ["judge_accuracy", "people_table_1"]
    told = rows(found, "people_table_1")
    assert {row["group"] for row in told} == {"judge", "second"}
    assert [row["System"] for row in told] == ["the model alone", "arXivBot"] * 4


def test_months_are_pooled_and_questions_of_one_id_in_two_of_them_stay_two(work, tmp_path):
    """All of March is correct, and nothing of April."""
    months = (MONTH, "2024-04")
    write_answers(work.root, months[1])
    graded(work, tmp_path / "march", always("correct", "held"), name="march", months=months[0])
    graded(work, tmp_path / "april", always("wrong", "not"), name="april", months=months[1])
    found = grades_section(read_grade_results(work.root, months))
    assert "4 questions" in found.paragraphs[0]
    told = table_1(found)["Factual", "arXivBot"]
    assert (told["People"]["value"], told["Questions"]) == (0.5, 4)


def test_the_report_is_made_anew_once_people_graded_and_shows_their_tables(tmp_path):
    place = workspace(tmp_path / "data", judges="judge-one", llm_model="some-model")
    write_month(place.root, MONTH, tasks=0)
    write_report_answers(place.root, MONTH, questions=6)
    run_stage(REPORT, place, MONTH)
    page = place.root.path / "reports" / MONTH / "answers.html"
    assert "People's grades" not in page.read_text()
    graded(place, tmp_path / "out", always("correct", "held"), lambda row: "partly")
    assert state(REPORT, place, MONTH) is State.STALE
    run_stage(REPORT, place, MONTH)
    told = json.loads((page.parent / "report.json").read_text())["tables"]
    assert {"answer_graders", "people_table_1"} <= told.keys()
    write_overall_page(place)
    for file in (page, place.root.path / "reports" / "index.html"):
        assert "Table 1 by people" in file.read_text()
