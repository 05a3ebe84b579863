"""`citeloom grading` as a user meets it: out, in, and what came of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pipeline.cli.app import app
from tests.unit.evaluation.answers.people_month import MONTH, Verdict, always, fill, write_answers
from tests.unit.evaluation.made_up import workspace


@pytest.fixture
def citeloom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Calls `citeloom grading …` on a data root with one month."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CITELOOM_DATA", str(tmp_path / "data"))
    write_answers(workspace(tmp_path / "data").root)
    return lambda *arguments: CliRunner().invoke(app, ["grading", *(str(each) for each in arguments)])


def returned(citeloom: Callable[..., Any], *verdicts: Verdict) -> list[Path]:
    """Sheets, one for each of the verdicts, filled in."""
    done = citeloom("sheets", "--out", "out", "--name", "pilot", "--graders", len(verdicts))
    assert done.exit_code == 0, done.output
    return [fill(Path("out") / f"sheet-{n}.csv", verdict) for n, verdict in enumerate(verdicts, 1)]


def test_sheets_go_out_come_back_and_are_told(citeloom: Callable[..., Any]) -> None:
    files = returned(citeloom, always("correct", "held"), always("correct", "held"), always("wrong", "partly"))
    back = citeloom("import", *files)
    assert back.exit_code == 0, back.output
    assert "21 lines on 3 answers by grader-1, grader-2, grader-3, grading pilot, into human_grades of 2024-03" in (
        back.stdout
    )
    told = citeloom("results")
    assert told.exit_code == 0, told.output
    words = " ".join(told.output.split())
    for part in ("3 graders, 21 verdicts on 3 answers to 2 questions", "Agreement of graders", "alpha, nominal",
                 "The judge against people: judge", "Table 1 by people: judge", "Claims of answers"):  # fmt: skip
        assert part in words


def test_every_command_gives_one_json_document(citeloom: Callable[..., Any], tmp_path: Path) -> None:
    out = json.loads(citeloom("sheets", "--to", "out", "--name", "pilot", "--questions", 1, "--json").stdout)
    assert (out["grading"], out["questions"], len(out["files"])) == ("pilot", 1, 7)
    assert Path(out["key"]) == tmp_path / "data" / "gradings" / "pilot" / "key.json"
    file = fill(tmp_path / "out" / "sheet-1.csv", always("correct", "held"))
    back = json.loads(citeloom("import", file, "--json").stdout)
    assert (back["months"], back["graders"]) == ([MONTH], ["grader-1"])
    told = json.loads(citeloom("results", "--json", "--months", MONTH).stdout)
    assert told["graders"] == ["pilot: grader-1"]
    assert told["agreement"]["claim"]["value"] is None
    cells = told["accuracy"]["judge"]["claim"]["confusion"]
    assert sum(cell["units"] for cell in cells) == told["accuracy"]["judge"]["claim"]["units"]


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("sheets", "--to", "out", "--name", "arxivbot"), 2, "tells raters of arxivbot"),
        (("sheets", "--to", "out", "--systems", "gpt"), 2, "nothing of gpt was graded"),
        (("sheets", "--to", "out", "--months", "2031-01"), 2, "2031-01"),
        (("sheets", "--to", "a_file"), 2, "--to a_file is a file"),
        (("import", "nowhere.csv"), 2, "nowhere.csv"),
        (("results",), 1, "citeloom grading import"),
    ],
)
def test_what_is_wrong_is_named(
    citeloom: Callable[..., Any], tmp_path: Path, arguments: tuple[str, ...], code: int, told: str
) -> None:
    (tmp_path / "a_file").touch()
    done = citeloom(*arguments)
    assert (done.exit_code, told in done.stderr) == (code, True), done.output
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "data" / "gradings").exists()
