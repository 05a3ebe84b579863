"""Committed figures of judges, and where they are printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.engine.run import run_stage
from pipeline.evaluation.judge_figures import (
    JudgeFigures,
    MacroF1,
    SetFigures,
    TaskName,
    judge_label,
    judge_sentences,
    prompt_digest,
    read_figures,
    write_figures,
)
from pipeline.report.stages import REPORT
from tests.unit.evaluation.made_up import workspace, write_month
from tests.unit.evaluation.made_up_answers import write_answers

MONTH = "2024-03"
TASKS: tuple[TaskName, ...] = ("citation_support", "claim_grade")


def figures(judge: str, prompt: str, date: str) -> JudgeFigures:
    sets = (SetFigures(set="SciFact", claims=339, supported_or_not=MacroF1(0.5, 0.4, 0.6)),)
    return JudgeFigures(
        judge=judge, task="claim_grade", prompt=prompt, date=date, source="a test", sets=sets
    )


def test_a_judge_has_its_committed_figures_and_any_other_is_not_verified() -> None:
    label = judge_label("overlap", "citation_support")
    assert label.startswith("overlap (macro-F1 0.")
    assert label.endswith("on SciFact, supported or not)")
    (sentence,) = judge_sentences(["overlap"], "citation_support")
    assert "three classes" in sentence
    assert "316 claims of Citation-Integrity" in sentence
    assert judge_label("gpt-9", "citation_support") == "gpt-9 (not verified)"
    assert [
        "not verified" in each for each in judge_sentences(["overlap", "gpt-9"], "claim_grade")
    ] == [True, True]


def test_committed_figures_are_of_the_prompts_in_use() -> None:
    assert [each.prompt for each in read_figures()] == [
        prompt_digest(each.judge, each.task) for each in read_figures()
    ], "run python -m benchmarks.judges --write"


def test_a_models_verdicts_follow_from_the_prompt_of_its_task() -> None:
    overlap = prompt_digest("overlap", "citation_support")
    citation, claim = (prompt_digest("m", task) for task in TASKS)
    assert len({overlap, citation, claim}) == 3
    assert citation == prompt_digest("another model", "citation_support")


def test_figures_replace_earlier_ones_of_the_same_judge_and_task(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    file.write_text("[]")
    write_figures(
        [figures("one", "earlier", "2026-01-01"), figures("two", "p", "2026-01-01")], file
    )
    write_figures([figures("one", "p", "2026-02-01")], file)
    assert read_figures(file) == [
        figures("one", "p", "2026-02-01"),
        figures("two", "p", "2026-01-01"),
    ]


@pytest.mark.slow
def test_a_report_says_of_a_judge_without_figures_that_it_is_not_verified(tmp_path: Path) -> None:
    place = workspace(tmp_path / "data", judges="judge-one", models=None)
    write_month(place.root, MONTH)
    write_answers(place.root, MONTH, questions=2)
    run_stage(REPORT, place, MONTH)
    folder = place.root.path / "reports" / MONTH
    pages = ["index.html", "answers.html", *(file.name for file in folder.glob("question-*.html"))]
    pages += [file.name for file in folder.glob("task-*.html") if "legend" in file.read_text()]
    pages = [page for page in pages if not page.endswith("-written.html")]
    assert len(pages) > 3
    for page in pages:
        assert "not verified" in " ".join((folder / page).read_text().split()), page
