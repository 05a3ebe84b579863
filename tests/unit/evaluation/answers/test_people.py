"""Sheets that graders get and send back, and their marks beside a judge's."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import SettingError
from pipeline.evaluation.answers.grades import Grade
from pipeline.evaluation.answers.measures import answer_measures
from pipeline.evaluation.answers.people import (
    Mark,
    Part,
    Unit,
    answers_agreement,
    graded_by_people,
    graders_agreement,
    judge_accuracy,
    majority,
)
from pipeline.evaluation.answers.sheets import COLUMNS, Key, Shown, make_key, read_sheet, sheet
from tests.unit.evaluation.answers.graded import grade

GRADES = [
    grade(["correct", "wrong"], ["held"], number=1, system="alpha"),
    grade(["correct"], ["not"], number=1, system="beta"),
    grade(["not_checkable"], ["partly"], number=2, system="alpha"),
    grade(gold=["not"], number=2, system="beta", outcome="abstained"),
]
SHOWN = {
    f"q{number}": Shown(
        f"=Question {number}?", {"alpha": "The first\nanswer.", "beta": "The second\x07 answer."}, "2024-03", ("Boats",)
    )
    for number in (1, 2)
}


def unit(number: int, system: str, part: Part, place: int = 1) -> Unit:
    return Unit(f"q{number}", system, part, f"{'Claim' if part == 'claim' else 'Fact'} {place}.")


def marks(*given: tuple[Unit, str]) -> list[Mark]:
    """A letter for each grader: "ccw" are the marks correct, correct, wrong of graders 0, 1, 2."""
    words = {"c": "correct", "p": "partly", "w": "wrong", "x": "not_checkable", "h": "held", "n": "not"}
    return [Mark(f"grader {n}", of, words[letter]) for of, letters in given for n, letter in enumerate(letters)]


MARKS = marks(
    (unit(1, "alpha", "claim", 1), "ccw"),
    (unit(1, "alpha", "claim", 2), "ccp"),
    (unit(1, "beta", "claim"), "cw"),
    (unit(2, "alpha", "claim"), "xxx"),
    (unit(1, "alpha", "gold"), "hhh"),
    (unit(1, "beta", "gold"), "nnp"),
)


def key() -> Key:
    return make_key("spring", GRADES, 7, SHOWN)


def filled(verdicts: dict[tuple[str, str], str], grader: str = "Ada", delimiter: str = ",") -> bytes:
    """The sheet with a verdict for each (part, text) that there is."""
    rows = list(csv.DictReader(io.StringIO(sheet(key(), SHOWN).decode("utf-8-sig"), newline="")))
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, delimiter=delimiter)
    writer.writeheader()
    for row in rows:
        writer.writerow(row | {"grader": grader, "verdict": verdicts.get((row["part"], row["text"]), "")})
    return text.getvalue().encode()


def test_a_sheet_has_a_line_for_every_claim_and_gold_claim_and_names_no_system() -> None:
    content = sheet(key(), SHOWN).decode("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(content, newline="")))
    assert tuple(rows[0]) == COLUMNS
    assert len(rows) == 3 + 2 + 2
    assert {row["verdict"] for row in rows} == {""}
    assert "alpha" not in content
    assert "beta" not in content
    assert "correct" not in content
    assert {row["question"][:2] for row in rows} == {"'="}
    assert "\x07" not in content


def test_letters_are_shuffled_by_the_seed_and_answers_without_claims_are_left_out() -> None:
    assert key() == make_key("spring", GRADES[::-1], 7, SHOWN)
    orders = {tuple(of.system for of in make_key("spring", GRADES, seed, SHOWN).labels.values()) for seed in range(20)}
    assert len(orders) > 1
    assert {(of.question_id, of.system) for of in key().labels.values()} == {
        ("q1", "alpha"), ("q1", "beta"), ("q2", "alpha"),
    }  # fmt: skip
    assert Key.model_validate_json(key().model_dump_json()) == key()
    with pytest.raises(SettingError, match="no answer has anything to grade"):
        make_key("spring", GRADES[3:], 7, SHOWN)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_sheet_that_comes_back_is_read_whatever_parts_its_cells(delimiter: str) -> None:
    content = filled({("claim", "Claim 2."): "Not checkable", ("gold", "Fact 1."): "HELD"}, delimiter=delimiter)
    found = read_sheet("back.csv", content, key())
    assert {mark.grader for mark in found} == {"Ada"}
    assert sorted((mark.unit, mark.verdict) for mark in found) == [
        (unit(1, "alpha", "claim", 2), "not_checkable"),
        (unit(1, "alpha", "gold"), "held"),
        (unit(1, "beta", "gold"), "held"),
        (unit(2, "alpha", "gold"), "held"),
    ]


def test_faults_of_a_sheet_are_told_with_their_lines() -> None:
    with pytest.raises(SettingError, match=r"back.csv line \d: verdict is 'perhaps': write one of correct, partly"):
        read_sheet("back.csv", filled({("claim", "Claim 1."): "perhaps"}), key())
    with pytest.raises(SettingError, match="the grader is not named"):
        read_sheet("back.csv", filled({("claim", "Claim 1."): "wrong"}, grader=""), key())
    assert read_sheet("back.csv", filled({("claim", "Claim 2."): "wrong"}, grader=""), key(), "Bo")[0].grader == "Bo"
    with pytest.raises(SettingError, match="no column verdict"):
        read_sheet("back.csv", b"grader,label,part,number\n", key())
    with pytest.raises(SettingError, match="not UTF-8"):
        read_sheet("back.csv", b"\x80\x81", key())
    line = "grader,label,part,number,verdict\nAda,{},{},{},wrong\n"
    faults = {
        ("Q09-A", "claim", "1"): "no answer 'Q09-A'",
        ("Q01-A", "title", "1"): "part is 'title'",
        ("Q01-A", "claim", "9"): "has no claim '9'",
        ("Q01-A", "claim", "x"): "has no claim 'x'",
    }
    for cells, told in faults.items():
        with pytest.raises(SettingError, match=told):
            read_sheet("back.csv", line.format(*cells).encode(), key())
    twice = line.format("Q01-A", "claim", 1) + "Ada,Q01-A,claim,1,correct\n"
    with pytest.raises(SettingError, match=r"marks claim 'Claim 1\.' twice"):
        read_sheet("back.csv", twice.encode(), key())


@pytest.mark.parametrize("name", ["", " ", "Ada"])
def test_a_name_on_one_line_is_that_of_all(name: str) -> None:
    lines = ["grader,label,part,number,verdict", f"{name},Q01-A,claim,1,wrong", "Ada,Q02-B,gold,1.0,Held"]
    found = read_sheet("back.csv", "\n".join(lines).encode(), key())
    assert [mark.grader for mark in found] == ["Ada", "Ada"]


def test_of_two_graders_in_one_sheet_a_line_without_a_name_is_named() -> None:
    lines = [
        "grader,label,part,number,verdict",
        "Ben,Q01-A,claim,1,wrong",
        "Ada,Q02-B,gold,1,held",
        ",Q02-A,gold,1,held",
    ]
    with pytest.raises(SettingError, match=r"^back.csv line 4: the grader is not named"):
        read_sheet("back.csv", "\n".join(lines).encode(), key())


def test_a_comment_that_spills_over_its_cell_is_refused() -> None:
    lines = ["grader,label,part,number,verdict,comment", "Ada,Q01-A,claim,1,wrong,well, perhaps"]
    with pytest.raises(SettingError, match=r"more cells than there are columns .*put quotes around its comment"):
        read_sheet("back.csv", "\n".join(lines).encode(), key())


def said_of(content: bytes) -> str:
    """What a sheet is refused with; the file's name where it is read."""
    try:
        read_sheet("back.csv", content, key())
    except SettingError as error:
        return str(error)
    return "back.csv"


@given(st.lists(st.binary(max_size=60), max_size=6), st.sampled_from([b",", b";", b"\t"]))
def test_whatever_comes_back_is_read_or_refused_by_name(cells: list[bytes], delimiter: bytes) -> None:
    head = delimiter.join([b"grader", b"label", b"part", b"number", b"verdict"])
    assert "back.csv" in said_of(b"".join(cells))
    assert "back.csv" in said_of(head + b"\n" + delimiter.join(cells))


def test_a_verdict_that_is_not_there_counts_for_nothing() -> None:
    only_said = [Mark("grader 3", each.unit, None, "I cannot tell.") for each in MARKS]
    assert majority([*MARKS, *only_said]) == majority(MARKS)
    assert graders_agreement([*MARKS, *only_said]) == graders_agreement(MARKS)
    assert judge_accuracy(GRADES, only_said)["claim"].undecided == 0


def test_most_graders_decide_and_a_tie_decides_nothing() -> None:
    found = majority(MARKS)
    assert found[unit(1, "alpha", "claim", 1)] == "correct"
    assert unit(1, "beta", "claim") not in found
    assert len(found) == 5


def test_how_often_the_judge_is_right() -> None:
    """Of three decided claims the judge has two (it calls one wrong that people call correct); of two gold claims
    both; one claim is undecided."""
    found = judge_accuracy(GRADES, MARKS)
    claims, gold = found["claim"], found["gold"]
    assert (claims.units, claims.same, claims.undecided) == (3, 2 / 3, 1)
    assert claims.confusion == {
        ("correct", "correct"): 1, ("correct", "wrong"): 1, ("not_checkable", "not_checkable"): 1,
    }  # fmt: skip
    assert claims.low is not None
    assert claims.high is not None
    assert claims.low <= 2 / 3 <= claims.high
    assert (gold.units, gold.same, gold.low) == (2, 1.0, None)
    # Scott's pi: observed 2/3; shares 3/6, 1/6, 2/6 give 14/36 by chance; (2/3 - 14/36) / (1 - 14/36) = 10/22.
    assert claims.kappa.value == pytest.approx(10 / 22)


def test_without_marks_nothing_is_said_of_a_judge() -> None:
    found = judge_accuracy(GRADES, [])["claim"]
    assert (found.units, found.same, found.kappa.value) == (0, None, None)
    with pytest.raises(ValueError, match="several judges"):
        judge_accuracy([GRADES[0], grade(judge="another")], MARKS)


def test_graders_who_all_agree_have_an_alpha_of_one() -> None:
    agreed = marks((unit(1, "alpha", "gold"), "hhh"), (unit(1, "beta", "gold"), "nnn"))
    found = graders_agreement(agreed)
    assert found["gold"].value == 1.0
    assert found["claim"].value is None
    split = graders_agreement(MARKS)["claim"]
    assert split.value is not None
    assert split.value < 1
    assert split.units == 4


def test_peoples_verdicts_stand_in_for_the_judges() -> None:
    """alpha's claims of question 1 are both correct for people, half of them for the judge; what they left alone has
    no verdict; the abstention stays."""
    found: list[Grade] = graded_by_people(GRADES, majority(MARKS))
    assert [(each.question_id, each.system, each.judge) for each in found] == [
        ("q1", "alpha", "people"), ("q1", "beta", "people"), ("q2", "alpha", "people"), ("q2", "beta", "people"),
    ]  # fmt: skip
    assert answer_measures(found[0])["factual"] == 1.0
    assert answer_measures(GRADES[0])["factual"] == 0.5
    assert "factual" not in answer_measures(found[1])
    assert "coverage" not in answer_measures(found[2])
    assert found[0].spent.calls == 0
    assert len(graded_by_people(GRADES, {})) == 1


def test_whole_answers_are_compared_too() -> None:
    found = answers_agreement(GRADES, graded_by_people(GRADES, majority(MARKS)), "factual")
    assert found is not None
    assert (found.tasks, found.sections, found.mean_difference) == (2, 2, 0.25)
    assert answers_agreement(GRADES, [], "factual") is None
