"""Answers with known grades: a judge that goes by the words tells them apart, one that always agrees does not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipeline.evaluation.answers.grading import HALF, OTHER, OWN, control_cases, expected_coverage
from pipeline.evaluation.answers.results import ALL, results
from tests.scripted_llm import Asked
from tests.unit.evaluation.answers.graded import OTHER as OTHER_PAPER
from tests.unit.evaluation.answers.graded import PAPER, fence, form_of, graded, question

QUESTIONS = [
    question(1, "Every boat floats.", "There are twelve boats.", "They are red."),
    question(2, "Kites fly.", "Kites are light.", papers=[OTHER_PAPER]),
    question(3, "Boats are of wood.", kind="dataset"),
]


def by_the_words(asked: Asked) -> str | None:
    if form_of(asked) == "AnswerClaims":
        return json.dumps({"claims": fence(asked, "answer").split("\n")})
    if form_of(asked) == "ClaimFinding":
        there = fence(asked, "claim") in fence(asked, "facts")
        return json.dumps({"quote": fence(asked, "claim"), "verdict": "correct" if there else "not_checkable"})
    there = fence(asked, "fact") in fence(asked, "answer")
    return json.dumps({"quote": fence(asked, "fact"), "verdict": "held" if there else "not"})


def test_every_question_has_its_controls_and_the_last_is_on_other_papers() -> None:
    found = control_cases(QUESTIONS[::-1])
    assert [(case.question.id, case.system) for case in found] == [
        (f"q{number}", system) for number in (1, 2, 3) for system in (OWN, HALF, OTHER)
    ]
    assert found[1].answered.text == "Every boat floats. There are twelve boats."
    assert found[2].answered.text == "Kites fly. Kites are light."
    assert found[5].question.kind == "summary"
    assert found[5].answered.text.startswith("Every boat floats.")
    assert found[8].answered.text == "Kites fly. Kites are light."
    assert {case.system for case in control_cases([question(1, papers=[PAPER]), question(2, papers=[PAPER])])} == {
        OWN, HALF,
    }  # fmt: skip


def test_a_judge_that_goes_by_the_words_gives_the_coverage_that_is_expected(tmp_path: Path) -> None:
    found, _ = graded(tmp_path, control_cases(QUESTIONS), by_the_words)
    means = {result.system: result.measures for result in results(found) if result.group == ALL}
    for system, expected in expected_coverage(QUESTIONS).items():
        assert means[system]["coverage"].value == pytest.approx(sum(expected.values()) / 3)
    assert expected_coverage(QUESTIONS)[HALF] == {"q1": 2 / 3, "q2": 0.5, "q3": 1.0}
    assert (means[OWN]["factual"].value, means[OTHER]["factual"].value) == (1.0, 0.0)
