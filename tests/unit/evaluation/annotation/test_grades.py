"""Studies of grades: the sheets of graders, and their verdicts in the table. What every study does:
`test_import`.
"""

from itertools import pairwise

import pytest
from selectolax.lexbor import LexborHTMLParser

from pipeline.errors import MissingInput, SettingError
from pipeline.evaluation.annotation.importer import import_files
from pipeline.evaluation.answers.measures import read_grades
from pipeline.evaluation.answers.people import MEANINGS, NO_JUDGE
from pipeline.evaluation.answers.people_measures import pool_months, read_month_grades
from pipeline.report.judgements import grades_section
from pipeline.tables import ANSWERS, HUMAN_GRADES, QUESTIONS
from tests.month_tables import write_table
from tests.unit.evaluation.annotation.people_month import (
    MONTH,
    SYSTEMS,
    always,
    fill,
    give_out,
    month_grades,
    rows_of,
    write_answers,
)
from tests.unit.evaluation.annotation.studied import imported
from tests.unit.evaluation.answers.graded import grade
from tests.unit.evaluation.made_up import workspace

pytestmark = pytest.mark.slow

LINES = 4 + 3
CLAIM_VERDICTS = "correct, partly, wrong, not_checkable"


@pytest.fixture
def work(tmp_path):
    """A workspace with one month."""
    work = workspace(tmp_path / "data")
    write_answers(work.root)
    return work


def results(work, grades):
    return pool_months({MONTH: read_month_grades(work.root, MONTH, grades)})


def rows_in(work):
    return work.root.rows(HUMAN_GRADES, MONTH)


def test_page_and_sheet_have_a_line_for_each_claim_in_one_order(work, tmp_path):
    for first in (3, 5, 7):
        write_answers(work.root, f"2024-0{first + 1}", first=first)
    export, files = give_out(work.root, tmp_path / "out")
    rows = rows_of(files[0])
    assert {row["unit"] for row in rows} == set(export.study.units)
    assert len(rows) == 4 * LINES
    assert all(row["text"] == export.study.units[row["unit"]].text for row in rows)
    assert export.notes[-1] == "each annotator has 28 lines on 12 answers to 8 questions to grade"
    for number, file in enumerate(files, 1):
        page = LexborHTMLParser((tmp_path / "out" / f"page-{number}.html").read_text())
        assert [
            (line.css_first("span").text(), line.css_first("bdi").text())
            for line in page.css(".lines li")
        ] == [(row["unit"], row["text"]) for row in rows_of(file)]
        questions = [row["unit"][:3] for row in rows_of(file)]
        changes = sum(one != other for one, other in pairwise(questions))
        assert changes == 8 - 1, "answers to one question stand side by side"


def test_the_files_of_graders_say_what_may_be_written_and_reveal_nothing(work, tmp_path):
    _, files = give_out(work.root, tmp_path / "out")
    page = LexborHTMLParser((tmp_path / "out" / "page-1.html").read_text())
    terms = zip(page.css("dt"), page.css("dd"), strict=True)
    assert [(name.text(), words.text()) for name, words in terms] == [
        pair for part in MEANINGS.values() for pair in part.items()
    ]
    assert "Boats, https://arxiv.org/abs/2403.00001" in page.text()
    rows = rows_of(files[0])
    assert {(row["unit"].split("-")[2], row["allowed"], row["verdict"]) for row in rows} == {
        ("claim", f"one of {CLAIM_VERDICTS}, or one for each claim of the line", ""),
        ("gold", "one of held, partly, not", ""),
    }
    names = sorted(file.name for file in (tmp_path / "out").iterdir())
    assert names == [
        f"{kind}-{n}.{end}" for kind, end in (("page", "html"), ("sheet", "csv")) for n in (1, 2, 3)
    ]
    for name in names:
        text = (tmp_path / "out" / name).read_text(encoding="utf-8-sig")
        assert not [word for word in (*SYSTEMS, "judge") if word in text]


def test_what_abstains_needs_no_grader_and_what_was_not_graded_by_all_is_left_out(work, tmp_path):
    write_answers(work.root, "2024-04", first=3, grades=month_grades(first=3)[:1])
    export, files = give_out(work.root, tmp_path / "out")
    assert export.lacking == {"arxivbot": 1, "direct": 2}
    assert "1 answers of direct abstain or claim nothing: they need no grader" in export.notes
    assert len(rows_of(files[0])) == LINES
    alone, _ = give_out(work.root, tmp_path / "alone", name="alone", systems=["arxivbot"])
    assert len(alone.items) == 3
    assert alone.notes[0] == "1 questions have nothing of arxivbot, and are left out"


def test_verdicts_go_with_their_systems_into_the_table(work, tmp_path):
    export, (sheet, other, _) = give_out(work.root, tmp_path / "out")
    filled = fill(sheet, always(" Not Checkable ", "held"), comment="Sure; quite sure.")
    done = imported(work, filled)
    assert (done.study, done.annotator, done.rows) == ("pilot", "annotator-1", LINES)
    rows = rows_in(work)
    systems = {unit.label: unit.system for unit in export.study.units.values()}
    assert all(systems[row["label"]] == row["system"] for row in rows)
    columns = ("question_id", "system", "part", "text", "verdict")
    assert {tuple(row[name] for name in columns) for row in rows} == {
        ("q1", "arxivbot", "claim", "Claim 1.", "not_checkable"),
        ("q1", "arxivbot", "claim", "Claim 2.", "not_checkable"),
        ("q1", "arxivbot", "gold", "Fact 1.", "held"),
        ("q1", "direct", "claim", "Claim 1.", "not_checkable"),
        ("q1", "direct", "gold", "Fact 1.", "held"),
        ("q2", "arxivbot", "claim", "Claim 1.", "not_checkable"),
        ("q2", "arxivbot", "gold", "Fact 1.", "held"),
    }
    assert [row["comment"] for row in rows if row["comment"]] == ["Sure; quite sure."]
    # Again: one answer is replaced, and no other.
    label = rows[0]["label"]
    again = fill(other, lambda row: "partly" if row["unit"].startswith(label) else "")
    imported(work, again, annotator="ANNOTATOR-1")
    assert {row["label"] for row in rows_in(work) if row["verdict"] == "partly"} == {label}
    assert len(rows_in(work)) == LINES


def test_a_verdict_of_the_other_kind_is_wrong_and_costs_no_other_line(work, tmp_path):
    _, (sheet, *_) = give_out(work.root, tmp_path / "out")
    for verdict, allowed in (
        ("correct", "held, partly, not"),
        ("held", f"{CLAIM_VERDICTS}, or one for each claim of the line"),
    ):
        (done,) = import_files(work, [fill(sheet, always(verdict, verdict))])
        assert {fault.partition(", ")[2] for fault in done.faults} == {
            f"column verdict: '{verdict}': write one of {allowed}, or leave it empty"
        }
    assert {(row["part"], row["verdict"]) for row in rows_in(work)} == {
        ("claim", "correct"),
        ("gold", "held"),
    }


def test_grades_of_answers_that_were_written_or_split_anew_are_left_out(work, tmp_path):
    _, files = give_out(work.root, tmp_path / "out")
    filled = [fill(file, always("correct", "held")) for file in files[:2]]
    import_files(work, filled)
    found = results(work, read_grades(work.root, MONTH))
    assert (found.outdated, found.answers, found.verdicts) == (0, 3, 2 * LINES)
    write_answers(work.root, words=" Mended.")
    assert [sheet.replaced for sheet in import_files(work, filled)] == [LINES, LINES]
    found = results(work, read_grades(work.root, MONTH))
    assert (found.outdated, found.answers) == (2 * 2, 2)
    regraded = [grade(["correct"], ["held"], system="arxivbot"), *month_grades()[1:]]
    assert results(work, regraded).outdated == 2 * 2 + 2
    work.root.file(QUESTIONS, MONTH).unlink()
    assert results(work, regraded).answers == 0


def test_where_no_judge_graded_the_sentences_are_graded_and_have_results(work, tmp_path):
    write_answers(work.root, grades=[])
    _, files = give_out(work.root, tmp_path / "out", 1)
    assert {(row["unit"].split("-", 2)[2], row["text"]) for row in rows_of(files[0])} == {
        ("claim-1", "Answer 1 of one."),
        ("claim-1", "Answer 2 of one."),
        ("gold-1", "Fact 1."),
    }
    imported(work, fill(files[0], always("partly", "held")))
    found = results(work, [])
    assert (found.verdicts, found.outdated, found.accuracy) == (8, 0, {})
    assert [system.system for system in found.systems] == list(SYSTEMS)
    for system in found.systems:
        assert (system.people["factual"].value, system.people["coverage"].value) == (0.5, 1.0)
        assert (system.judged["factual"].value, system.difference["factual"]) == (None, None)
    assert [grid.key for grid in grades_section(found).grids] == ["people_table_1"]
    # A judge grades these answers later, and splits them otherwise.
    both = results(work, month_grades())
    assert (both.outdated, both.verdicts) == (0, 8)
    own = [system for system in both.systems if system.judge == NO_JUDGE]
    assert [system.people["factual"].value for system in own] == [0.5] * len(SYSTEMS)


def test_a_sentence_is_split_by_its_verdicts_also_where_a_judge_has_split_the_answers(
    work, tmp_path
):
    export, (one, other) = give_out(work.root, tmp_path / "out", 2, sentences=True)
    texts = {unit.text for unit in export.study.units.values()}
    assert texts == {"Answer 1 of one.", "Answer 2 of one.", "Fact 1."}
    imported(work, fill(one, always("Correct; wrong, correct", "held")))
    imported(work, fill(other, always("partly", "held")))
    found = results(work, read_grades(work.root, MONTH))
    own = [system for system in found.systems if system.judge == NO_JUDGE]
    # One grader finds three claims in each sentence, two of them correct; the other finds one.
    assert own[0].people["factual"].value == pytest.approx((2 / 3 + 1 / 2) / 2)
    assert found.verdicts == len(export.study.units) * 2 + 2 * 4
    # As a whole, a sentence with different verdicts is partly correct.
    assert {row["verdict"] for row in rows_in(work) if row["part"] == "claim"} == {
        "correct, wrong, correct",
        "partly",
    }
    assert "which they split into claims themselves" in grades_section(found).paragraphs[0]


def test_an_answer_that_abstains_holds_no_gold_claim_without_a_judge(work, tmp_path):
    write_answers(work.root, grades=[])
    answers = [
        row | {"abstained": row["system"] == "direct"} for row in work.root.rows(ANSWERS, MONTH)
    ]
    write_table(work.root, ANSWERS, MONTH, answers)
    export, files = give_out(work.root, tmp_path / "out", 1, systems=["arxivbot", "direct"])
    assert "2 answers of direct abstain or claim nothing: they need no grader" in export.notes
    imported(work, fill(files[0], always("correct", "held")))
    (graded,) = results(work, []).systems  # nobody graded any answer of direct
    assert (graded.system, graded.people["coverage"].value) == ("arxivbot", 1.0)


def test_where_there_is_nothing_to_grade_it_is_said_why(work, tmp_path):
    empty, silent = (workspace(tmp_path / name).root for name in ("empty", "silent"))
    with pytest.raises(MissingInput, match="there is no answer: set CITELOOM_QUESTIONS"):
        give_out(empty, tmp_path / "out")
    write_answers(silent, grades=[grade(gold=["not"], outcome="abstained")])
    with pytest.raises(MissingInput, match="no answer has anything to grade"):
        give_out(silent, tmp_path / "out")
    write_answers(work.root, "2024-04")
    with pytest.raises(SettingError, match="question q1 is asked in 2024-03 and in 2024-04"):
        give_out(work.root, tmp_path / "out")
