"""`citeloom study` as a user meets it: out, in, and what came of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pipeline.cli.app import app
from pipeline.tables import G_SCORES, RELATED_WORK_TASKS
from tests.unit.evaluation.human.studied import MONTH, SYSTEMS, workspace, write_month, write_table
from tests.unit.evaluation.human.test_results import judgement


@pytest.fixture
def citeloom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Calls `citeloom study …` on a data root with one month."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CITELOOM_DATA", str(tmp_path / "data"))
    write_month(workspace(tmp_path / "data").root)
    return lambda *arguments: CliRunner().invoke(app, ["study", *(str(each) for each in arguments)])


def export(citeloom: Callable[..., Any], *options: object) -> Any:
    return citeloom("export", "--to", "sheets", "--name", "pilot", "--systems", ",".join(SYSTEMS), *options)


def filled(folder: Path, rater: str, shift: int) -> Path:
    """A file of ratings made of the key, as a rater who sees no key would give them."""
    key = json.loads((folder / "data" / "studies" / "pilot" / "key.json").read_text())
    head = "task,label,consistency,coherence,comparative,integrity,fluency,citation_accuracy,preferred,study,rater"
    lines = [
        f"{task['task']},{label},{1 + (place + shift) % 5},4,3,2,5,4,{'x' if place == shift else ''},pilot,{rater}"
        for task in key["tasks"]
        for place, label in enumerate(task["labels"])
    ]
    (folder / f"{rater}.csv").write_text("\n".join([head, *lines]))
    return folder / f"{rater}.csv"


def test_a_study_goes_out_comes_back_and_is_told(citeloom: Callable[..., Any], tmp_path: Path) -> None:
    out = export(citeloom)
    assert out.exit_code == 0, out.output
    assert {file.name for file in (tmp_path / "sheets").iterdir()} == {"README.txt", "form.html", "sheet.csv"}
    assert "the key is " in out.stderr
    back = citeloom("import", *(filled(tmp_path, rater, place) for place, rater in enumerate(("Ada", "Ben"))))
    assert back.exit_code == 0, back.output
    assert "24 ratings of 4 tasks by Ada, Ben, study pilot, into human_ratings of 2024-03" in back.stdout
    told = citeloom("results")
    assert told.exit_code == 0, told.output
    for words in ("2 raters, 4 tasks, 24 ratings", "zero_shot", "preferred, %", "alpha, fluency", "kappa, preference"):
        assert words in told.stdout


def test_every_command_gives_one_json_document(citeloom: Callable[..., Any], tmp_path: Path) -> None:
    out = json.loads(export(citeloom, "--json", "--tasks", 2).stdout)
    assert (out["study"], out["tasks"], len(out["files"])) == ("pilot", 2, 3)
    back = json.loads(citeloom("import", filled(tmp_path, "Ada", 0), "--json").stdout)
    assert (back["rows"], back["months"]) == (6, [MONTH])
    assert json.loads(citeloom("results", "--json", "--months", MONTH).stdout)["raters"] == ["Ada"]


def test_the_judge_is_shown_beside_the_raters(citeloom: Callable[..., Any], tmp_path: Path) -> None:
    export(citeloom)
    citeloom("import", filled(tmp_path, "Ada", 0))
    root = workspace(tmp_path / "data").root
    names = [row["task_id"] for row in root.rows(RELATED_WORK_TASKS, MONTH)]
    rows = [judgement(name, (place + 1, 2), "one") for place, name in enumerate(names)]
    for row in rows:
        for mark, system in zip(row["marks"], SYSTEMS[:2], strict=True):
            mark["system"] = system
    write_table(root, G_SCORES, MONTH, rows)
    told = " ".join(citeloom("results").stdout.split())
    assert "same favourite │ 0 of 4 tasks" in told
    assert "raters less judge" in told


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("export", "--to", "sheets", "--name", "chatcite"), 2, "--name chatcite tells raters"),
        (("export", "--to", "sheets", "--systems", "gpt"), 2, "gpt"),
        (("export", "--to", "sheets", "--systems", "chatcite,litllm"), 1, "4 without litllm"),
        (("export", "--to", "sheets", "--months", "2031-01"), 2, "2031-01"),
        (("export", "--to", "a_file"), 2, "--to a_file is a file"),
        (("import", "nowhere.csv"), 2, "nowhere.csv"),
        (("results",), 1, "citeloom study import"),
    ],
)
def test_what_is_wrong_is_named(
    citeloom: Callable[..., Any], tmp_path: Path, arguments: tuple[str, ...], code: int, told: str
) -> None:
    (tmp_path / "a_file").touch()
    done = citeloom(*arguments)
    assert (done.exit_code, told in done.stderr) == (code, True), done.output
    assert not (tmp_path / "sheets").exists()
    assert not (tmp_path / "data" / "studies").exists()


def test_a_refused_file_leaves_nothing_behind(citeloom: Callable[..., Any], tmp_path: Path) -> None:
    export(citeloom)
    good, bad = filled(tmp_path, "Ada", 0), filled(tmp_path, "Ben", 1)
    bad.write_text(bad.read_text().replace("T02,A,2", "T02,A,9"))
    done = citeloom("import", good, bad)
    assert (done.exit_code, "Ben.csv line 5: consistency is '9'" in done.stderr) == (2, True), done.output
    assert not (tmp_path / "data" / "human_ratings").exists()
