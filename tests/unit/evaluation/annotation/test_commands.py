"""`citeloom annotate` as a user meets it: out, in, status, and results, of both kinds."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pipeline.cli.app import app
from pipeline.tables import CRITERIA
from tests.unit.evaluation.annotation import people_month
from tests.unit.evaluation.annotation.people_month import always, fill
from tests.unit.evaluation.annotation.studied import (
    MONTH,
    sent_back,
    workspace,
    write_month,
)

pytestmark = pytest.mark.slow


@pytest.fixture
def citeloom(tmp_path, monkeypatch):
    """Calls `citeloom annotate …` on a data root with one month of sections and graded answers."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CITELOOM_DATA", str(tmp_path / "data"))
    root = workspace(tmp_path / "data").root
    write_month(root)
    people_month.write_answers(root)
    return lambda *arguments: CliRunner().invoke(
        app, ["annotate", *(str(argument) for argument in arguments)]
    )


def export(citeloom, kind, *options):
    done = citeloom("export", kind, "--to", "out", "--name", "pilot", *options)
    assert done.exit_code == 0, done.output
    return done


def rated(sheet, best):
    """A sheet of ratings with the mark 4 everywhere, and one letter preferred."""
    marks = dict.fromkeys(CRITERIA, "4")
    rows = [
        row | marks | {"preferred": "x" if row["unit"].endswith(best) else ""}
        for row in people_month.rows_of(sheet)
    ]
    return sent_back(sheet.parent, rows, sheet.name)


def test_ratings_go_out_come_back_and_have_results(citeloom, tmp_path):
    out = export(citeloom, "ratings", "--annotators", 2)
    assert {file.name for file in (tmp_path / "out").iterdir()} == {
        "page-1.html",
        "page-2.html",
        "sheet-1.csv",
        "sheet-2.csv",
    }
    assert "the key is " in out.stderr
    files = [
        rated(tmp_path / "out" / f"sheet-{number}.csv", letter)
        for number, letter in enumerate("AB", 1)
    ]
    back = citeloom("import", *files)
    assert back.exit_code == 0, back.output
    assert (
        "sheet-2.csv: imported 12 rows by annotator-2, study pilot: 72 of 72 cells are filled in"
        in back.stdout
    )
    status = " ".join(citeloom("status").stdout.split())
    assert "pilot" in status
    assert "annotator-1 72 of 72, annotator-2 72 of 72" in status
    results = citeloom("results", "ratings")
    assert results.exit_code == 0, results.output
    words = " ".join(results.output.split())
    for part in (
        "2 raters, 4 tasks, 24 ratings",
        "zero-shot",
        "Preferred",
        "Agreement of raters",
        "alpha, nominal",
    ):
        assert part in words


def test_grades_go_out_come_back_and_have_results(citeloom, tmp_path):
    export(citeloom, "grades")
    verdicts = (always("correct", "held"), always("correct", "held"), always("wrong", "partly"))
    files = [
        fill(tmp_path / "out" / f"sheet-{number}.csv", verdict)
        for number, verdict in enumerate(verdicts, 1)
    ]
    back = citeloom("import", *files)
    assert back.exit_code == 0, back.output
    assert "sheet-3.csv: imported 7 rows by annotator-3, study pilot" in back.stdout
    results = citeloom("results", "grades")
    assert results.exit_code == 0, results.output
    words = " ".join(results.output.split())
    for part in (
        "3 graders, 21 verdicts on 3 answers to 2 questions",
        "Agreement of graders",
        "alpha, nominal",
        "The judge against people: judge",
        "Table 1 by people: judge",
        "Claims of answers",
    ):
        assert part in words


@pytest.mark.parametrize(("kind", "who"), [("ratings", "raters"), ("grades", "graders")])
def test_every_command_gives_one_json_document(citeloom, tmp_path, kind, who):
    out = json.loads(export(citeloom, kind, "--json", "--items", 1).stdout)
    assert (out["study"], out["kind"], out["items"], len(out["files"])) == ("pilot", kind, 1, 6)
    assert Path(out["key"]) == tmp_path / "data" / "annotations" / "pilot" / "key.json"
    sheet = tmp_path / "out" / "sheet-1.csv"
    file = rated(sheet, "A") if kind == "ratings" else fill(sheet, always("correct", "held"))
    (back,) = json.loads(citeloom("import", file, "--json").stdout)["sheets"]
    assert (back["rows"], back["faults"]) == (out["units"], [])
    (status,) = json.loads(citeloom("status", "--json").stdout)["studies"]
    assert status["filled"] == {"annotator-1": status["cells"]}
    results = json.loads(citeloom("results", kind, "--json", "--months", MONTH).stdout)
    assert results[who][0].endswith("annotator-1")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (
            ("export", "ratings", "--to", "out", "--name", "chatcite"),
            2,
            "--name chatcite reveals chatcite",
        ),
        (
            ("export", "ratings", "--to", "out", "--systems", "gpt"),
            2,
            "nothing of gpt; there is chatcite, few_shot",
        ),
        (("export", "ratings", "--to", "out", "--months", "2031-01"), 2, "2031-01"),
        (("export", "ratings", "--to", "a_file"), 2, "--to a_file is a file"),
        (("export", "grades", "--to", "out", "--without-gold"), 2, "--without-gold is for ratings"),
        (("import", "nowhere.csv"), 2, "nowhere.csv"),
        (("results", "ratings"), 1, "citeloom annotate import"),
        (("results", "grades"), 1, "citeloom annotate import"),
    ],
)
def test_what_is_wrong_is_named(
    citeloom,
    tmp_path,
    arguments,
    code,
    message,
):
    (tmp_path / "a_file").touch()
    done = citeloom(*arguments)
    assert (done.exit_code, message in done.stderr) == (code, True), done.output
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "data" / "annotations").exists()


def test_what_is_wrong_in_a_sheet_is_listed_and_the_rest_is_imported(citeloom, tmp_path):
    export(citeloom, "ratings")
    bad = rated(tmp_path / "out" / "sheet-1.csv", "A")
    bad.write_text(bad.read_text().replace(",4,", ",9,", 1))
    other = tmp_path / "other.csv"
    other.write_text("unit,mark")
    done = citeloom("import", bad, other)
    assert done.exit_code == 1, done.output
    assert (
        "sheet-1.csv: line 2, column consistency: '9': write a whole number from 1 to 5"
        in done.stderr
    )
    assert "other.csv: line 1: no column study, annotator in 'unit, mark'" in done.stderr
    assert "imported 11 rows by annotator-1" in done.stdout
