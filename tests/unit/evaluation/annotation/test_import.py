"""Sheets that come back: what is right is imported, what is wrong is named and costs nothing
else.
"""

import json
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, repeat

import pytest
from typer.testing import CliRunner

from pipeline.doors.cli.app import app
from pipeline.engine.locks import month_lock
from pipeline.errors import MissingInput, SettingError
from pipeline.evaluation.annotation.sheets import import_files
from pipeline.tables import CRITERIA, HUMAN_GRADES, HUMAN_RATINGS
from tests.cases import cases
from tests.processes import PATIENCE
from tests.unit.evaluation.annotation.studies import (
    MONTH,
    WRITERS,
    always,
    fill,
    give_out,
    imported,
    rated,
    save,
    write_answers,
    write_sections,
)
from tests.unit.evaluation.made_up import workspace

pytestmark = pytest.mark.slow

CASES = "unit/evaluation/cases.toml"
LINES = 4 * len(WRITERS)
EMPTY = dict.fromkeys(CRITERIA, "")


@pytest.fixture
def work(tmp_path):
    """A workspace with one month."""
    work = workspace(tmp_path / "data")
    write_sections(work.root)
    write_answers(work.root)
    return work


@pytest.fixture
def sheet(work, tmp_path):
    """The sheet of a study of that month's sections."""
    return give_out(work.root, tmp_path / "out", kind="ratings")[1][0]


def save_changed(sheet, *changes):
    """Save the lines of a rater, the first of them changed."""
    lines = zip(rated(sheet), chain(changes, repeat({})), strict=False)
    return save(sheet, [row | change for row, change in lines])


def stored(work, label=""):
    """Label → stored rating, of labels that begin so."""
    rows = work.root.rows(HUMAN_RATINGS, MONTH)
    return {row["label"]: row for row in rows if row["label"].startswith(label)}


def test_labels_become_the_systems_of_the_key(work, tmp_path):
    study, (sheet,) = give_out(work.root, tmp_path / "out", kind="ratings")
    comment = "so, so; “fine”\nand =long"
    first, *others = rated(sheet)
    rows = [first | {"fluency": "2", "comment": comment}, *others]
    rows = [{"mine": "", **row, "annotator": "Bjørn Ö."} for row in rows]
    done = imported(work, save(sheet, rows))
    assert (done.annotator, done.entries) == ("Bjørn Ö.", LINES)
    ratings = stored(work)
    for label, row in ratings.items():
        expected = study.units[label].system, label.endswith("-A")
        assert (row["system"], row["preferred"]) == expected
    columns = ("rater", "fluency", "coherence", "comment")
    assert [ratings["T01-A"][name] for name in columns] == ["Bjørn Ö.", 2, 4, comment]


@cases(CASES, "wrong_lines", ["column", "cell", "message", "others"])
def test_a_line_that_is_wrong_is_named_and_costs_no_other_line(
    work, sheet, column, cell, message, others
):
    changes = {column: cell} | ({"comment": "one\ntwo"} if column == "coherence" else {})
    (done,) = import_files(work, [save_changed(sheet, changes)])
    wrong = LINES - 1 if others else 1
    assert (done.entries, len(done.faults)) == (LINES - wrong, wrong)
    assert message in done.faults[0]


def test_a_corrected_sheet_replaces_the_earlier_one_and_its_wrong_lines_lose_nothing(work, sheet):
    first, _, third, *_ = rated(sheet)
    imported(work, save_changed(sheet))
    (done,) = import_files(
        work, [save_changed(sheet, {"fluency": "five"}, {"fluency": "1"}, {"unit": "T1-C"})]
    )
    assert (done.entries, len(done.faults)) == (LINES - 2, 2)
    assert [row["fluency"] for row in stored(work, "T01").values()] == [4, 1, 4]
    labels = {*stored(work)}
    imported(work, save(sheet, [first | {"preferred": ""}, third | EMPTY]))
    assert {*stored(work)} == labels - {third["unit"]}, "a line that is empty now is taken back"


@pytest.mark.parametrize(
    ("changes", "preferred", "faults"),
    [
        ([{}, {"preferred": "x"}], [None] * 3, 1),
        ([{"preferred": ""}], [None] * 3, 0),
        ([{"preferred": ""}, EMPTY | {"preferred": "x"}, EMPTY], [False, True, False], 0),
        ([{"fluency": "many"}, {"preferred": "x"}], [False, True, False], 1),
        ([{"fluency": "many"}], [True, False, False], 1),
    ],
    ids=["two", "none", "without marks", "another one", "the earlier one"],
)
def test_at_most_one_section_of_a_task_is_preferred(work, sheet, changes, preferred, faults):
    imported(work, save_changed(sheet))
    (done,) = import_files(work, [save_changed(sheet, *changes)])
    assert len(done.faults) == faults
    assert [row["preferred"] for row in stored(work, "T01").values()] == preferred


@cases(CASES, "no_sheets", ["content", "message"])
def test_a_file_that_is_no_sheet_is_refused_and_nothing_is_imported(
    work, sheet, tmp_path, content, message
):
    file = tmp_path / "strange"
    file.write_text(content)
    with pytest.raises((SettingError, MissingInput)) as refused:
        import_files(work, [save_changed(sheet), file])
    assert str(refused.value).startswith(f"{file}: ")
    assert message in str(refused.value)
    assert not work.root.file(HUMAN_RATINGS, MONTH).exists()


def test_importing_again_or_in_another_order_gives_the_same_rows(work, tmp_path):
    write_sections(work.root, "2024-04", tasks=2)
    _, sheets = give_out(work.root, tmp_path / "out", 3, kind="ratings")
    files = [save_changed(sheet) for sheet in sheets]
    import_files(work, files)
    table = work.root.file(HUMAN_RATINGS, MONTH)
    rows, content = work.root.rows(HUMAN_RATINGS, MONTH), table.read_bytes()
    assert len(rows) == 3 * LINES
    assert len(work.root.rows(HUMAN_RATINGS, "2024-04")) == 3 * 2 * len(WRITERS)
    imported(work, files[0])
    assert table.read_bytes() == content
    table.unlink()
    for file in reversed(files):
        imported(work, file)
    assert work.root.rows(HUMAN_RATINGS, MONTH) == rows


def test_an_import_waits_while_another_one_runs(work, sheet):
    file = save_changed(sheet)
    with ThreadPoolExecutor(1) as executor:
        with month_lock(work, "annotations", "all"):
            waiting = executor.submit(imported, work, file)
            with pytest.raises(TimeoutError):
                waiting.result(0.3)
            assert not work.root.file(HUMAN_RATINGS, MONTH).exists()
        assert waiting.result(PATIENCE).entries == LINES


def test_verdicts_go_with_their_claims_into_the_table_and_those_of_the_other_kind_are_wrong(
    work, tmp_path
):
    study, (sheet,) = give_out(work.root, tmp_path / "out")
    imported(work, fill(sheet, always("Correct, not_checkable", "held"), comment="Sure; quite."))
    (done,) = import_files(work, [fill(sheet, always("held", "correct"), comment="Sure; quite.")])
    assert (done.entries, len(done.faults)) == (0, 7)
    rows = work.root.rows(HUMAN_GRADES, MONTH)
    columns = ("question_id", "system", "part", "text", "verdict")
    verdicts = {"claim": "correct, not_checkable", "gold": "held"}
    assert {tuple(row[name] for name in columns) for row in rows} == {
        (unit.item_id, unit.system, unit.part, unit.text, verdicts[unit.part])
        for unit in study.units.values()
    }
    assert [row["comment"] for row in rows if row["comment"]] == ["Sure; quite."]


@pytest.mark.parametrize(("kind", "people"), [("ratings", "raters"), ("grades", "graders")])
def test_a_study_by_the_commands(work, tmp_path, monkeypatch, kind, people):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CITELOOM_DATA", str(work.root.path))

    def citeloom(*arguments):
        done = CliRunner().invoke(app, ["annotate", *map(str, arguments)])
        return done.exit_code, done.output

    (tmp_path / "a_file").touch()
    for wrong in (("--to", "a_file"), ("--to", "out", "--name", f"{WRITERS[0]}-direct")):
        assert citeloom("export", kind, *wrong)[0] == 2
    assert not (tmp_path / "out").exists()
    code, output = citeloom("export", kind, "--to", "out", "--annotators", 1)
    assert (code, "do not give it to annotators" in output) == (0, True)
    sheet = tmp_path / "out" / f"{kind}-1.csv"
    save_changed(sheet) if kind == "ratings" else fill(sheet, always("correct", "held"))
    assert citeloom("import", sheet)[0] == 0
    code, output = citeloom("results", kind, "--json")
    results = json.loads(output)
    annotators = (results["sets"][0] if kind == "ratings" else results)[people]
    assert (code, annotators[0].endswith("annotator-1")) == (0, True)
    assert citeloom("results", kind, "--name", "none")[0] == 1
    sheet.write_text(sheet.read_text().replace(",x,", ",y,").replace("correct", "right"))
    code, output = citeloom("import", sheet)
    assert (code, f"{kind}-1.csv: line " in output) == (1, True)
