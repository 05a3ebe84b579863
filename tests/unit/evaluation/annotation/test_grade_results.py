"""Results of people's grades beside a judge's: numbers that can be worked out by hand."""

import json

import pytest

from pipeline.engine.run import State, run_stage, state
from pipeline.evaluation.annotation.results import grade_results, read_grade_results
from pipeline.evaluation.annotation.study import import_files
from pipeline.report.judgements import grades_section
from pipeline.report.publish import write_overall_page
from pipeline.report.stages import REPORT
from pipeline.tables import ANSWER_GRADES, ANSWERS
from tests.month_tables import write_table
from tests.unit.evaluation.annotation.studies import MONTH, give_out, graded, save
from tests.unit.evaluation.answers.graded import grade
from tests.unit.evaluation.made_up import workspace, write_month
from tests.unit.evaluation.made_up_answers import write_answers

VERDICTS = {"c": "correct", "p": "partly", "w": "wrong", "x": "not_checkable", "h": "held"}
VERDICTS |= {"n": "not", ".": None, "s": "correct, wrong"}


def month_grades(judge="judge"):
    """Two questions, two systems: three answers with claims, and one that abstains."""
    return [
        grade(["correct", "wrong"], ["held"], system="arxivbot", judge=judge),
        grade(["correct"], ["not"], judge=judge),
        grade(["not_checkable"], ["partly"], number=2, system="arxivbot", judge=judge),
        grade(gold=["not"], number=2, judge=judge, outcome="abstained"),
    ]


def rows(question, system, text, letters):
    """A letter for each grader: "ccw" are the verdicts correct, correct, wrong of graders 0, 1, 2;
    a dot is a comment without a verdict, s are several verdicts of an earlier sheet.
    """
    about = {"question_id": question, "system": system, "text": text, "study": "pilot"}
    part = "claim" if text.startswith("Claim") else "gold"
    return [
        about | {"part": part, "grader": f"{grader}", "verdict": VERDICTS[letter]}
        for grader, letter in enumerate(letters)
    ]


ROWS = [
    *rows("q1", "arxivbot", "Claim 1.", "ccw"),
    *rows("q1", "arxivbot", "Claim 2.", "ccp"),
    *rows("q1", "direct", "Claim 1.", "cw"),
    *rows("q2", "arxivbot", "Claim 1.", "xxx"),
    *rows("q1", "arxivbot", "Fact 1.", "hhh"),
    *rows("q1", "direct", "Fact 1.", "nnp"),
]


def results(rows, *judges):
    return grade_results(rows, [each for judge in judges for each in month_grades(judge)], 0)


def test_a_verdict_that_is_not_there_counts_for_nothing():
    found = results([*ROWS, *rows("q2", "arxivbot", "Fact 1.", "..s")], "judge")
    assert found == results(ROWS, "judge")
    assert found.verdicts == len(ROWS)
    alone = results(rows("q1", "arxivbot", "Claim 1.", "."), "judge").accuracy["judge"]["claim"]
    assert (alone.undecided, alone.same.count, alone.same.value, alone.alpha.value) == (
        0, 0, None, None,
    )  # fmt: skip


def test_how_often_the_judge_is_right_where_most_graders_agree():
    """Of three decided claims the judge has two (it calls one wrong that people call correct); of
    two gold claims both; on one claim graders are split.
    """
    found = results(ROWS, "judge").accuracy["judge"]
    claims, gold = found["claim"], found["gold"]
    assert (claims.same.count, claims.same.value, claims.undecided) == (3, 2 / 3, 1)
    assert claims.same.low <= 2 / 3 <= claims.same.high
    assert (gold.same.count, gold.same.value, gold.same.low) == (2, 1.0, None)
    # Observed disagreement 1/3. Of six verdicts 3 are correct, 1 wrong, 2 not checkable: by chance
    # 1 - (6 + 2) / 30.
    assert claims.alpha.value == pytest.approx(1 - (1 / 3) / (22 / 30))


def test_systems_are_compared_on_the_claims_of_each_grader():
    """Of arXivBot's claims on question 1, graders 0 and 1 have 1 and 1, grader 2 has 0 and 1/2;
    question 2 has 0 for all. The judge has 1/2 and 0 of the same claims.
    """
    systems = results(ROWS, "judge").systems["judge"]
    found = {(each.system, each.part): each for each in systems}
    bot = found["arxivbot", "claim"]
    assert bot.people.value == pytest.approx(((1 + 1 + 0.25) / 3 + 0) / 2)
    assert bot.judged.value == pytest.approx((0.5 + 0) / 2)
    # The other abstains from question 2, whose gold claims nobody graded: one question.
    assert found["direct", "gold"].people.count == 1
    more = results([*ROWS, *rows("q2", "arxivbot", "Fact 1.", "hhh")], "judge").systems["judge"]
    silent = {(each.system, each.part): each for each in more}["direct", "gold"]
    assert (silent.people.count, silent.people.value) == (2, pytest.approx((0.5 / 3 + 0) / 2))


def table(found, key):
    """Rows of a table by the names of its columns, as report.json has them."""
    return next(grid for grid in found.grids if grid.key == key).as_json()["rows"]


def test_where_a_grader_marked_a_part_the_judge_is_taken_for_the_same_part():
    """Of arXivBot's claims on question 1 the judge has the first correct and the second wrong."""
    found = grades_section(results(rows("q1", "arxivbot", "Claim 1.", "p"), "judge", "second"), {})
    # One grader agrees with nobody.
    assert [grid.key for grid in found.grids] == ["judge_accuracy", "people_table_1"]
    cells = [
        (row["group"], row["Share"], row["System"], row["People"], row["Judge"])
        for row in table(found, "people_table_1")
    ]
    assert cells == [(judge, "Factual", "arXivBot", 0.5, 1.0) for judge in ("judge", "second")]


@pytest.fixture
def work(tmp_path):
    """A workspace with one month."""
    work = workspace(tmp_path / "data", judges="judge-one", llm_model="some-model")
    write_month(work.root, MONTH, tasks=0)
    write_answers(work.root, MONTH)
    return work


def grade_answers(work, folder, claim="correct", gold="held", **choices):
    """A sheet goes out, and comes back with these verdicts."""
    study, (sheet,) = give_out(work, folder, kind="grades", **choices)
    import_files(work, [save(sheet, graded(sheet, claim, gold))])
    return study


def test_grades_of_answers_that_were_written_or_split_anew_are_left_out(work, tmp_path):
    study = grade_answers(work, tmp_path / "out")
    units = study.units.values()
    found = read_grade_results(work.root, [MONTH])
    assert (found.outdated, found.verdicts, found.graders) == (0, len(units), 1)
    answers = work.root.rows(ANSWERS, MONTH)
    anew = [row | ({"text": "New."} if row["system"] == "direct" else {}) for row in answers]
    write_table(work.root, ANSWERS, MONTH, anew)
    outdated = sum(unit.system == "direct@some-model" for unit in units)
    found = read_grade_results(work.root, [MONTH])
    assert (found.outdated, found.verdicts) == (outdated, len(units) - outdated)
    regraded = work.root.rows(ANSWER_GRADES, MONTH)
    (first,) = (
        row for row in regraded if row["question_id"] == "q1" and row["system"] == "wikichat"
    )
    first["claims"] = first["claims"][1:]
    write_table(work.root, ANSWER_GRADES, MONTH, regraded)
    assert read_grade_results(work.root, [MONTH]).outdated == outdated + 1
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
    row = table(found, "people_table_1")[0]
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
