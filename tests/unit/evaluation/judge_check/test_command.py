"""`citeloom verify-judge`, what it keeps, and what the report prints of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pipeline.cli.app import app
from pipeline.engine.run import State, run_stage, state
from pipeline.errors import PermanentFailure
from pipeline.evaluation.judge_check.labelled_claims import read_sets
from pipeline.evaluation.judge_check.record import (
    FOLDER,
    JudgeCheck,
    checks_digest,
    current_digest,
    read_checks,
    write_check,
)
from pipeline.report.stages import REPORT
from pipeline.tables import CITATION_SUPPORT
from tests.scripted_llm import ScriptedLlm
from tests.unit.evaluation.judge_check.labelled import write_citation_integrity, write_scifact
from tests.unit.evaluation.judge_check.test_verify import knowing
from tests.unit.evaluation.made_up import workspace, write_month
from tests.unit.evaluation.made_up_answers import write_answers

pytestmark = pytest.mark.slow

MONTH = "2024-03"


@pytest.fixture
def verify(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Calls `citeloom verify-judge` on two small sets."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CITELOOM_DATA", str(tmp_path / "data"))
    write_citation_integrity(tmp_path / "labelled")
    write_scifact(tmp_path / "labelled")
    return lambda *arguments: CliRunner().invoke(app, ["verify-judge", "--data", "labelled", *map(str, arguments)])


def test_without_an_endpoint_the_judge_that_calls_no_model_is_measured(
    verify: Callable[..., Any], tmp_path: Path
) -> None:
    done = verify()
    assert done.exit_code == 0, done.output
    assert "no endpoint judges" in done.stderr
    assert "overlap, citation support" in done.stdout
    checks = read_checks(workspace(tmp_path / "data").root)
    assert set(checks.checks) == {("overlap", "citation_support")}
    assert [result.calls for result in checks.checks["overlap", "citation_support"].sets] == [0, 0]


def test_an_endpoint_is_asked_after_its_cost_was_estimated(
    verify: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ScriptedLlm(knowing(read_sets(tmp_path / "labelled", "dev"))) as llm:
        monkeypatch.setenv("CITELOOM_LLM_URL", llm.url)
        monkeypatch.setenv("CITELOOM_LLM_MODEL", llm.model)
        planned = json.loads(verify("--estimate", "--json").stdout)
        assert (planned["estimates"][0]["calls"], llm.requests) == (14, [])
        assert not (tmp_path / "data" / FOLDER).exists()
        done = verify()
        assert done.exit_code == 0, done.output
        assert f"{llm.model}: 14 calls" in done.stderr
        document = json.loads(verify("--json", "--limit", 2).stdout)
    assert [(check["judge"], check["task"]) for check in document["checks"]] == [
        ("overlap", "citation_support"), (llm.model, "citation_support"), (llm.model, "claim_grade"),
    ]  # fmt: skip
    assert {result["measures"]["claims"] for check in document["checks"] for result in check["sets"]} == {2}
    assert len(list((tmp_path / "data" / FOLDER).glob("*.json"))) == 3, "the same judge and prompt have one file"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--judge", "gpt-9"), 2, "--judge names the model gpt-9, which is not defined"),
        (("--data", "nowhere"), 1, "--data nowhere has no citation_integrity/claims_dev.jsonl.gz"),
    ],
)
def test_what_is_wrong_is_named(
    verify: Callable[..., Any], tmp_path: Path, arguments: tuple[str, ...], code: int, message: str
) -> None:
    done = verify(*arguments)
    assert (done.exit_code, message in done.stderr) == (code, True), done.output
    assert not (tmp_path / "data" / FOLDER).exists()


def verified(verify: Callable[..., Any], tmp_path: Path, judge: str) -> JudgeCheck:
    """A check of a judge of the report, with the figures of the judge that calls no model."""
    assert verify().exit_code == 0
    root = workspace(tmp_path / "data").root
    check = read_checks(root).checks["overlap", "citation_support"]
    return JudgeCheck(judge, "citation_support", current_digest(judge, "citation_support"), check.sets)


def test_a_check_of_another_prompt_does_not_count_and_a_damaged_one_is_named(
    verify: Callable[..., Any], tmp_path: Path
) -> None:
    root = workspace(tmp_path / "data").root
    check = verified(verify, tmp_path, "judge-one")
    write_check(root, JudgeCheck(check.judge, check.task, "another prompt", check.sets))
    assert read_checks(root).label("judge-one", "citation_support") == "judge-one (not verified)"
    file = write_check(root, check)
    assert "macro-F1" in read_checks(root).label("judge-one", "citation_support")
    assert "not verified" in read_checks(root).sentences(["judge-one"], "claim_grade")[0]
    file.write_bytes(b"{}")
    with pytest.raises(PermanentFailure, match="is damaged"):
        read_checks(root)


def test_the_report_prints_the_figures_beside_the_judgements_or_that_there_are_none(
    verify: Callable[..., Any], tmp_path: Path
) -> None:
    place = workspace(tmp_path / "data", judges="judge-one", models=None)
    write_month(place.root, MONTH)
    write_answers(place.root, MONTH, questions=2)
    run_stage(REPORT, place, MONTH)
    folder = place.root.path / "reports" / MONTH

    def text(page: str) -> str:
        return " ".join((folder / page).read_text().split())

    pages = ["index.html", "answers.html", *(file.name for file in folder.glob("question-*.html"))]
    pages += [file.name for file in folder.glob("task-*.html") if "legend" in file.read_text()]
    pages = [page for page in pages if not page.endswith("-written.html")]
    assert len(pages) > 3
    for page in pages:
        assert "not verified" in text(page), page
    before = checks_digest(place.root)
    judge = next(row["judge"] for row in place.root.rows(CITATION_SUPPORT, MONTH) if row["judge"])
    check = verified(verify, tmp_path, judge)
    write_check(place.root, check)
    assert checks_digest(place.root) != before
    assert state(REPORT, place, MONTH) is State.STALE
    run_stage(REPORT, place, MONTH)
    assert f"On claims that other people labelled, {judge} reaches" in text("index.html")
    assert f"judge {judge} (macro-F1" in text("index.html")
    assert "(not verified)" in text("answers.html"), "as a grader of answers it was not measured"
