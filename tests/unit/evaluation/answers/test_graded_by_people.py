"""People's grades from the stages to the report: what a judge graded goes out, comes back and
stands beside it.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipeline.engine.stage import Workspace
from pipeline.evaluation.annotation.importer import import_files
from pipeline.evaluation.answers.measures import read_grades
from pipeline.evaluation.answers.people_measures import GradeResults, pool_months, read_month_grades
from tests.scripted_llm import Asked, ScriptedLlm
from tests.unit.answering.corpus import MARCH
from tests.unit.answering.staging import reading, run_all, staged
from tests.unit.evaluation.annotation.people_month import always, fill, give_out, rows_of
from tests.unit.evaluation.answers.graded import form_of
from tests.unit.evaluation.answers.test_grade_stage import WRITERS

pytestmark = pytest.mark.slow


def lenient(asked: Asked) -> str | None:
    """A judge that finds one claim in everything, and it correct; a fact held."""
    told = {
        "AnswerClaims": {"claims": ["It says something."]},
        "ClaimFinding": {"quote": "", "verdict": "correct"},
        "GoldFinding": {"quote": "", "verdict": "held"},
    }.get(form_of(asked))
    return None if told is None else json.dumps(told)


def resplit(asked: Asked) -> str | None:
    """The same judge, which splits answers otherwise."""
    return (
        json.dumps({"claims": ["It says another thing."]})
        if form_of(asked) == "AnswerClaims"
        else lenient(asked)
    )


def found(place: Workspace) -> GradeResults:
    grades = read_grades(place.root, MARCH)
    return pool_months({MARCH: read_month_grades(place.root, MARCH, grades)})


def test_a_strict_grader_beside_a_lenient_judge_until_answers_are_split_anew(
    corpus: Workspace, tmp_path: Path
) -> None:
    with ScriptedLlm(lenient, reading) as llm:
        place = staged(corpus, tmp_path, llm)
        run_all(place)
    export, (sheet,) = give_out(
        place.root, tmp_path / "out", 1, name="spring", months=MARCH, seed=1
    )
    assert list(export.systems) == WRITERS
    rows = rows_of(sheet)
    assert len(rows) == len(export.study.units) > 0
    page = (tmp_path / "out" / "page-1.html").read_text()
    assert all(
        question.view["text"] in page and "https://arxiv.org/abs/" in page
        for question in export.items
    )
    import_files(place, [fill(sheet, always("wrong", "not"))])
    told = found(place)
    answers = {unit.label for unit in export.study.units.values()}
    assert (told.outdated, told.verdicts, told.answers) == (0, len(rows), len(answers))
    assert {
        system.system: system.people["factual"].value for system in told.systems
    } == dict.fromkeys(WRITERS, 0.0)
    assert {
        system.system: system.judged["coverage"].value for system in told.systems
    } == dict.fromkeys(WRITERS, 1.0)
    assert told.accuracy["scripted"]["claim"].same == 0
    claims = sum("-claim-" in row["unit"] for row in rows)
    with ScriptedLlm(resplit, reading, models=("another",)) as llm:
        again = staged(place, tmp_path / "again", llm, llm_model="another")
        run_all(again)
    assert found(again).outdated >= claims
