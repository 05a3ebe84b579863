"""People's grades from the stages to the report: what a judge graded goes out, comes back and stands beside it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline import tables
from pipeline.answering.stages import ANSWERS
from pipeline.engine.stage import Workspace
from pipeline.evaluation.answers.choosing import choose, write_sheets
from pipeline.evaluation.answers.grading_key import keep_key
from pipeline.evaluation.answers.keeping import import_grades
from pipeline.evaluation.answers.people_results import PeopleResults, read_people
from pipeline.evaluation.answers.rows import grade_of
from pipeline.index import close_indexes
from tests.scripted_llm import Asked, ScriptedLlm
from tests.unit.answering.corpus import MARCH, build_corpus
from tests.unit.answering.staging import reading, run_all, staged
from tests.unit.evaluation.answers.graded import form_of
from tests.unit.evaluation.answers.people_month import fill, rows_of


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """A small corpus with a real index, which tests only read."""
    yield build_corpus(tmp_path_factory.mktemp("corpus") / "data")
    close_indexes()


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
    return json.dumps({"claims": ["It says another thing."]}) if form_of(asked) == "AnswerClaims" else lenient(asked)


def found(place: Workspace) -> PeopleResults:
    return read_people(place.root, {MARCH: map(grade_of, place.root.rows(tables.ANSWER_GRADES, MARCH))})


def test_a_strict_grader_beside_a_lenient_judge_until_answers_are_split_anew(corpus: Workspace, tmp_path: Path) -> None:
    with ScriptedLlm(lenient, reading) as llm:
        place = staged(corpus, tmp_path, llm, grade_controls=1)
        run_all(place)
    choice = choose(place.root, "spring", MARCH, None, questions=50, seed=1)
    keep_key(place.root, choice.key)
    assert choice.systems == tuple(sorted(ANSWERS))
    sheet = next(file for file in write_sheets(choice, tmp_path / "out", 1) if file.suffix == ".csv")
    rows = rows_of(sheet)
    assert len(rows) == choice.lines > 0
    assert all("https://arxiv.org/abs/" in row["papers"] and row["question"] and row["answer"] for row in rows)
    import_grades(place, [fill(sheet, lambda row: "wrong" if row["part"] == "claim" else "not")])
    told = found(place)
    assert (told.outdated, told.verdicts, told.answers) == (0, choice.lines, len(choice.key.labels))
    assert {each.system: each.people["factual"].value for each in told.systems} == dict.fromkeys(ANSWERS, 0.0)
    assert {each.system: each.judged["coverage"].value for each in told.systems} == dict.fromkeys(ANSWERS, 1.0)
    assert told.accuracy["scripted"]["claim"].same == 0
    claims = sum(row["part"] == "claim" for row in rows)
    with ScriptedLlm(resplit, reading, models=("another",)) as llm:
        again = staged(place, tmp_path / "again", llm, llm_model="another", grade_controls=1)
        run_all(again)
    assert found(again).outdated >= claims
