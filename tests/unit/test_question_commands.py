"""`citeloom questions` as a user meets it: its list, its decisions, a faulty set."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from pipeline.answering.questions import read_questions
from pipeline.cli.app import app
from pipeline.settings import SAMPLE_QUESTIONS
from tests.scripted_llm import ScriptedLlm
from tests.unit.answering.drafts import corpus, draft, drafter

pytestmark = pytest.mark.slow


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A data root with five drafts."""
    with ScriptedLlm(drafter) as llm:
        draft(corpus(tmp_path / "data", llm))
    return tmp_path / "data"


@pytest.fixture(autouse=True)
def _no_settings_of_a_developer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("CITELOOM_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def questions(root: Path, *arguments: object) -> Result:
    return CliRunner().invoke(app, ["questions", *map(str, arguments)], env=variables(root))


def variables(root: Path) -> dict[str, str]:
    return {"CITELOOM_DATA": str(root), "COLUMNS": "200", "NO_COLOR": "1"}


def document(done: Result) -> Any:
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_the_drafts_are_listed_with_claims_and_the_passages_that_hold_them(root: Path, tmp_path: Path) -> None:
    done = questions(root, "review", "--into", tmp_path / "set.jsonl")
    assert (done.exit_code, done.stdout.count("Q: ")) == (0, 5)
    assert "in Data: https://arxiv.org/html/2405.00001#S2.p1" in done.stdout
    assert not (tmp_path / "set.jsonl").exists()


def test_accepted_drafts_never_go_into_the_shipped_set_unasked(root: Path) -> None:
    before = SAMPLE_QUESTIONS.read_bytes()
    done = questions(root, "review", "--accept-all")
    assert (done.exit_code, SAMPLE_QUESTIONS.read_bytes()) == (2, before)
    assert "--into names no question set" in done.stderr


def test_a_script_lists_accepts_and_rejects_drafts(root: Path, tmp_path: Path) -> None:
    file = tmp_path / "set.yaml"
    listed = document(questions(root, "review", "--into", file, "--json"))
    ids = [each["id"] for each in listed["drafts"]]
    assert len(ids) == 5
    assert all(each["reviewed"] is False for each in listed["drafts"])
    done = document(questions(root, "review", "--into", file, "--accept", ids[0], "--reject", ids[1], "--json"))
    assert (done["added"], done["there"], done["rejected"]) == ([ids[0]], [], [ids[1]])
    assert document(questions(root, "review", "--into", file, "--accept", ids[0], "--json"))["there"] == [ids[0]]
    left = document(questions(root, "review", "--into", file, "--json"))
    assert ([each["id"] for each in left["drafts"]], left["in_set"], left["rejected"]) == (ids[2:], 1, 1)
    rest = questions(root, "review", "--into", file, "--accept-all")
    assert (rest.exit_code, rest.stdout.split()) == (0, ids[2:])
    assert [(question.id, question.reviewed) for question in read_questions(file)] == [
        (each, True) for each in (ids[0], *ids[2:])
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--accept", "boats"], "there is no draft boats"),
        (["--months", "2023-01", "--json"], "no month of 2023-01"),
    ],
)
def test_a_wrong_argument_is_named_and_changes_nothing(
    root: Path, tmp_path: Path, arguments: list[str], said: str
) -> None:
    done = questions(root, "review", "--into", tmp_path / "set.jsonl", *arguments)
    assert done.exit_code == 2
    assert said in done.stderr
    assert not (tmp_path / "set.jsonl").exists()


def test_where_nothing_was_drafted_the_command_says_how_to(tmp_path: Path) -> None:
    done = questions(tmp_path / "empty", "review", "--into", tmp_path / "set.jsonl", "--json")
    assert done.exit_code == 1
    assert "citeloom run --select question_drafts" in json.loads(done.stdout)["message"]
