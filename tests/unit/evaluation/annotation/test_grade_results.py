"""Results of people's grades beside a judge's: numbers that can be worked out by hand."""

import pytest

from pipeline.evaluation.annotation.grades import (
    NO_JUDGE,
    grade_results,
    read_grade_results,
)
from pipeline.evaluation.annotation.sheets import import_files
from pipeline.report.judgements import grades_section
from pipeline.tables import ANSWER_GRADES, QUESTIONS
from tests.month_tables import write_table
from tests.unit.evaluation.annotation.studies import (
    ANSWERERS,
    MONTH,
    always,
    fill,
    give_out,
    imported,
    month_grades,
    write_answers,
)
from tests.unit.evaluation.answers.graded import grade
from tests.unit.evaluation.made_up import workspace

GRADES = month_grades()
VERDICTS = {"c": "correct", "p": "partly", "w": "wrong", "x": "not_checkable", "h": "held"}
VERDICTS |= {"n": "not", ".": None}


def rows(question, system, text, letters):
    """A letter for each grader: "ccw" are the verdicts correct, correct, wrong of graders 0, 1, 2;
    a dot is a comment without a verdict.
    """
    about = {"question_id": question, "system": system, "text": text, "study": "pilot"}
    return [
        about
        | {
            "part": "claim" if text.startswith("Claim") else "gold",
            "grader": f"{grader}",
            "verdict": VERDICTS[letter],
            "comment": "I cannot tell." if letter == "." else None,
        }
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


def test_a_verdict_that_is_not_there_counts_for_nothing():
    found = grade_results([*ROWS, *rows("q2", "arxivbot", "Fact 1.", "...")], GRADES)
    assert (found.comments, found.verdicts) == (3, len(ROWS))
    assert found.accuracy == grade_results(ROWS, GRADES).accuracy
    comment = rows("q1", "arxivbot", "Claim 1.", ".")
    alone = grade_results(comment, GRADES).accuracy["judge"]["claim"]
    assert (alone.undecided, alone.units, alone.same, alone.alpha.value) == (0, 0, None, None)


def test_how_often_the_judge_is_right_where_most_graders_agree():
    """Of three decided claims the judge has two (it calls one wrong that people call correct); of
    two gold claims both; on one claim graders are split.
    """
    found = grade_results(ROWS, GRADES).accuracy["judge"]
    claims, gold = found["claim"], found["gold"]
    assert (claims.units, claims.same, claims.undecided) == (3, 2 / 3, 1)
    assert [(*cell.values(),) for cell in claims.confusion] == [
        ("correct", "correct", 1),
        ("correct", "wrong", 1),
        ("not_checkable", "not_checkable", 1),
    ]
    assert claims.low <= 2 / 3 <= claims.high
    assert (gold.units, gold.same, gold.low) == (2, 1.0, None)
    # Observed disagreement 1/3. Of six verdicts 3 are correct, 1 wrong, 2 not checkable: by chance
    # 1 - (6 + 2) / 30.
    assert claims.alpha.value == pytest.approx(1 - (1 / 3) / (22 / 30))


def test_systems_are_compared_on_the_claims_of_each_grader():
    """Of arXivBot's claims on question 1, graders 0 and 1 have 1 and 1, grader 2 has 0 and 1/2;
    question 2 has 0 for all. The judge has 1/2 and 0 of the same claims.
    """
    bot, alone = grade_results(ROWS, GRADES).systems
    assert bot.people["factual"].value == pytest.approx(((1 + 1 + 0.25) / 3 + 0) / 2)
    assert bot.judged["factual"].value == pytest.approx((0.5 + 0) / 2)
    # The other abstains from question 2, whose gold claims nobody graded: one question.
    assert alone.people["coverage"].count == 1


@pytest.fixture
def work(tmp_path):
    """A workspace with one month."""
    work = workspace(tmp_path / "data")
    write_answers(work.root)
    return work


def results(work, grades):
    write_table(work.root, ANSWER_GRADES, MONTH, grades)
    return read_grade_results(work.root, [MONTH])


def test_grades_of_answers_that_were_written_or_split_anew_are_left_out(work, tmp_path):
    _, files = give_out(work.root, tmp_path / "out", 2)
    import_files(work, [fill(file, always("correct", "held")) for file in files])
    found = results(work, GRADES)
    assert (found.outdated, found.answers, found.verdicts) == (0, 3, 2 * 7)
    write_answers(work.root, words=" Mended.")
    found = results(work, GRADES)
    assert (found.outdated, found.answers) == (2 * 2, 2)
    regraded = [grade(["correct"], ["held"], system="arxivbot"), *GRADES[1:]]
    assert results(work, regraded).outdated == 2 * 2 + 2
    work.root.file(QUESTIONS, MONTH).unlink()
    assert results(work, regraded).answers == 0


def test_where_no_judge_graded_the_sentences_are_graded_and_have_results(work, tmp_path):
    write_answers(work.root, grades=[])
    _, (sheet,) = give_out(work.root, tmp_path / "out")
    imported(work, fill(sheet, always("partly", "held")))
    found = results(work, [])
    assert (found.verdicts, found.outdated, found.accuracy) == (8, 0, {})
    assert [system.system for system in found.systems] == list(ANSWERERS)
    for system in found.systems:
        assert (system.people["factual"].value, system.people["coverage"].value) == (0.5, 1.0)
        assert (system.judged["factual"].value, system.difference["factual"]) == (None, None)
    # A judge grades these answers later, and splits them otherwise.
    both = results(work, GRADES)
    assert (both.outdated, both.verdicts) == (0, 8)
    own = [system for system in both.systems if system.judge == NO_JUDGE]
    assert [system.people["factual"].value for system in own] == [0.5] * len(ANSWERERS)


def test_a_sentence_is_split_by_its_verdicts_also_where_a_judge_has_split_the_answers(
    work, tmp_path
):
    study, (one, other) = give_out(work.root, tmp_path / "out", 2, sentences=True)
    texts = {unit.text for unit in study.units.values()}
    assert texts == {"Answer 1 of one.", "Answer 2 of one.", "Fact 1."}
    imported(work, fill(one, always("correct, wrong, correct", "held")))
    imported(work, fill(other, always("partly", "held")))
    found = results(work, GRADES)
    own = next(system for system in found.systems if system.judge == NO_JUDGE)
    # One grader finds three claims in each sentence, two of them correct; the other finds one.
    assert own.people["factual"].value == pytest.approx((2 / 3 + 1 / 2) / 2)
    assert found.verdicts == len(study.units) * 2 + 2 * 4
    assert "which they split into claims themselves" in grades_section(found).paragraphs[0]


def test_an_answer_that_abstains_holds_no_gold_claim_without_a_judge(work, tmp_path):
    write_answers(work.root, grades=[], abstains=["direct"])
    study, (sheet,) = give_out(work.root, tmp_path / "out")
    assert {unit.system for unit in study.units.values()} == {"arxivbot"}
    imported(work, fill(sheet, always("correct", "held")))
    (graded,) = results(work, []).systems  # nobody graded any answer of direct
    assert (graded.system, graded.people["coverage"].value) == ("arxivbot", 1.0)
