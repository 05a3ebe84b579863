"""What people's ratings and grades say, beside the judge's: numbers that can be worked out by hand,
and nothing where there is nothing.
"""

import json

import pytest

from pipeline.engine.run import State, run_stage, state
from pipeline.evaluation.annotation.results import (
    grade_results,
    rate_sets,
    read_grade_results,
    read_rating_results,
)
from pipeline.evaluation.annotation.study import import_files
from pipeline.evaluation.g_score.sample import MAIN
from pipeline.report.judgements import grades_section, ratings_section
from pipeline.report.publish import write_overall_page
from pipeline.report.stages import REPORT
from pipeline.tables import ANSWER_GRADES, ANSWERS, CRITERIA, SUMMARIES
from tests.cases import cases, values_at
from tests.month_tables import write_table
from tests.unit.evaluation.annotation.studies import MONTH, give_out, graded, save
from tests.unit.evaluation.answers.graded import grade
from tests.unit.evaluation.made_up import judgement, write_month
from tests.unit.evaluation.made_up_answers import write_answers
from tests.workspaces import make_workspace

SYSTEMS = ("one", "two")
VERDICTS = {"c": "correct", "p": "partly", "w": "wrong", "x": "not_checkable", "h": "held"}
VERDICTS |= {"n": "not", ".": None, "s": "correct, wrong"}


def rating(study, rater, task, system, mark, preferred=None):
    marks = mark if isinstance(mark, list) else [mark] * len(CRITERIA)
    named = zip(CRITERIA, [None if mark == "" else mark for mark in marks], strict=True)
    about = {"study": study, "rater": rater, "task_id": task, "system": system}
    return {**about, **dict(named), "preferred": preferred}


@cases("unit/evaluation/annotation/ratings.toml")
def test_ratings_come_to_what_was_worked_out_by_hand(case):
    judgements = [
        judgement(task, dict(zip(SYSTEMS, marks, strict=True)), best or None, repeat=place)
        for place, (task, *marks, best) in enumerate(case.get("judgements", ()))
    ]
    rows = [rating(*row) for row in case["ratings"]]
    found = rate_sets(rows, case.get("sets", {MAIN: SYSTEMS}), judgements)
    assert values_at(found, case["results"]) == pytest.approx(case["results"])


def verdict_rows(question, system, text, letters):
    """A row of `human_grades` for each letter, by the graders 0, 1, 2."""
    about = {"question_id": question, "system": system, "text": text, "study": "pilot"}
    part = "claim" if text.startswith("Claim") else "gold"
    return [
        about | {"part": part, "grader": f"{grader}", "verdict": VERDICTS[letter]}
        for grader, letter in enumerate(letters)
    ]


def grade_row(judge, question, system, claims, gold):
    verdicts = [VERDICTS[letter] for letter in claims], [VERDICTS[letter] for letter in gold]
    outcome = "answered" if claims else "abstained"
    return grade(*verdicts, number=question[1:], system=system, judge=judge, outcome=outcome)


@cases("unit/evaluation/annotation/grades.toml")
def test_grades_come_to_what_was_worked_out_by_hand(case):
    rows = [row for of_claim in case["verdicts"] for row in verdict_rows(*of_claim)]
    grades = [grade_row(judge, *row) for judge in ("judge", "second") for row in case["grades"]]
    found = grade_results(rows, grades, 0)
    assert values_at(found, case["results"]) == pytest.approx(case["results"])


@pytest.fixture
def work(tmp_path):
    """A workspace with one month of two sections that two raters rated, and of answers."""
    work = make_workspace(tmp_path / "data", judges="judge-one", llm_model="some-model")
    write_month(work.root, MONTH, raters=2)
    write_answers(work.root, MONTH)
    return work


def grade_answers(work, folder, claim="correct", gold="held", **choices):
    """A sheet goes out, and comes back with these verdicts."""
    study, (sheet,) = give_out(work, folder, kind="grades", **choices)
    import_files(work, [save(sheet, graded(sheet, claim, gold))])
    return study


def write_anew(work, table, *systems):
    """Change the texts of these systems."""
    rows = work.root.rows(table, MONTH)
    rows = [row | ({"text": "New."} if row["system"] in systems else {}) for row in rows]
    write_table(work.root, table, MONTH, rows)


def test_ratings_of_sections_that_have_changed_count_in_no_figure(work):
    def results(*anew):
        write_anew(work, SUMMARIES, *anew)
        return read_rating_results(work.root, work.settings, [MONTH, "2024-05"])

    of_set = results().sets[MAIN]
    assert (of_set.ratings, len(of_set.judges)) == (8, 1)
    found = results("chatcite")
    assert (found.outdated, found.sets[MAIN].ratings) == (4, 4)
    assert {*found.sets[MAIN].marks} == {"zero_shot@some-model"}
    found = results("zero_shot")
    assert (found.outdated, found.sets) == (8, {})
    told = " ".join(ratings_section(found).paragraphs)
    assert "8 ratings of sections that have changed since" in told
    assert ratings_section(read_rating_results(work.root, work.settings, ["2024-05"])) is None


def test_grades_of_answers_that_were_written_or_split_anew_are_left_out(work, tmp_path):
    units = grade_answers(work, tmp_path / "out").units.values()

    def counts():
        found = read_grade_results(work.root, [MONTH])
        return found.outdated, found.verdicts

    assert counts() == (0, len(units))
    write_anew(work, ANSWERS, "direct")
    outdated = sum(unit.system == "direct@some-model" for unit in units)
    assert counts() == (outdated, len(units) - outdated)
    regraded = work.root.rows(ANSWER_GRADES, MONTH)
    first = next(row for row in regraded if row["system"] == "wikichat")
    first["claims"] = first["claims"][1:]
    write_table(work.root, ANSWER_GRADES, MONTH, regraded)
    assert counts() == (outdated + 1, len(units) - outdated - 1)
    write_table(work.root, ANSWERS, MONTH, [])
    told = grades_section(read_grade_results(work.root, [MONTH]), {})
    assert told.grids == []
    assert f"{len(units)} verdicts on answers or claims that have changed" in told.paragraphs[1]


def test_months_are_pooled_and_questions_of_one_id_in_two_of_them_stay_two(work, tmp_path):
    """All of March is correct, and nothing of April."""
    months = (MONTH, "2024-04")
    write_answers(work.root, months[1])
    grade_answers(work, tmp_path / "march", name="march", months=months[0])
    grade_answers(work, tmp_path / "april", "wrong", "not", name="april", months=months[1])
    found = grades_section(read_grade_results(work.root, months), {})
    assert "8 questions" in found.paragraphs[0]
    # One grader agrees with nobody.
    accuracy, table_1 = found.grids
    assert (accuracy.key, table_1.key) == ("judge_accuracy", "people_table_1")
    row = table_1.as_json()["rows"][0]
    assert (row["People"]["value"], row["Questions"]) == (0.5, 8)


def test_the_report_is_made_anew_once_people_graded_and_shows_their_tables(work, tmp_path):
    run_stage(REPORT, work, MONTH)
    page = work.root.path / "reports" / MONTH / "answers.html"
    assert "People's grades" not in page.read_text()
    for name in ("one", "two"):
        grade_answers(work, tmp_path / name, name=name)
    assert state(REPORT, work, MONTH) is State.STALE
    run_stage(REPORT, work, MONTH)
    told = json.loads((page.parent / "report.json").read_text())["tables"]
    assert {"answer_graders", "people_table_1"} <= told.keys()
    write_overall_page(work)
    for file in (page, work.root.path / "reports" / "index.html"):
        assert "Table 1 by people" in file.read_text()
